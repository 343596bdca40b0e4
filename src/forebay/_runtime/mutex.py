"""The interpreted form of ``_runtime/mutex.pxd``: Python's own re-entrant lock.

Callers write ``acquire(self.lock)``, ``try``, ``finally: release(self.lock)``, because a ``with`` block would call two
Python methods when compiled.  When compiled, no Python code runs in between.  When interpreted, a signal handler or a
finaliser may run there and need the same lock.  That is refused, because it would wait for its own thread.
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
    """Releases the lock."""
    lock.release()


def give_way(lock: Any) -> None:
    """Lets waiting threads take a lock that this thread has just released.  Python's own lock needs no help."""
