"""The interpreted form of ``_runtime/mutex.pxd``: a lock of Python's.

A ``with`` block would call two Python methods when compiled, so compiled modules say ``acquire(self.lock)``, ``try``,
``finally: release(self.lock)``.  When compiled, no Python code runs in between.  Interpreted, a signal handler or
a finaliser may, and may need the same lock: that is refused, because it would wait for its own thread.
"""

from __future__ import annotations

import sys
from typing import Any

from forebay._runtime.threads import RLock as Mutex
from forebay._runtime.threads import get_ident as thread_ident

__all__ = ["HAS_GIL", "Mutex", "acquire", "give_way", "is_held", "release", "thread_ident"]

HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether one thread runs at a time."""


def is_held(lock: Any) -> bool:
    """Whether the calling thread holds the lock."""
    held: bool = lock._is_owned()
    return held


def acquire(lock: Any) -> None:
    """Waits until the lock is free, and takes it.

    Raises:
        RuntimeError: the calling thread holds it already.
    """
    if is_held(lock):
        raise RuntimeError(
            "a signal handler or a finaliser interrupted a step of this producer and needs the same lock; only the "
            "compiled form allows this"
        )
    lock.acquire()


def release(lock: Any) -> None:
    """Lets the next one have it."""
    lock.release()


def give_way(lock: Any) -> None:
    """Lets those have it who wait, before who has just let it go takes it again: here the interpreter's business."""
