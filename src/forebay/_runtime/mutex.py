"""The interpreted form of ``_runtime/mutex.pxd``: an ordinary lock.

A ``with`` block would call two Python methods when compiled, so compiled modules say ``acquire(self.lock)``, ``try``,
``finally: release(self.lock)``.
"""

from __future__ import annotations

import sys
from _thread import LockType

from forebay._runtime.threads import Lock as Mutex
from forebay._runtime.threads import get_ident as thread_ident

__all__ = ["HAS_GIL", "Mutex", "acquire", "give_way", "release", "thread_ident"]

HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether one thread runs at a time."""


def acquire(lock: LockType) -> None:
    """Waits until the lock is free, and takes it."""
    lock.acquire()


def release(lock: LockType) -> None:
    """Lets the next one have it."""
    lock.release()


def give_way(lock: LockType) -> None:
    """Lets those have it who wait, before who has just let it go takes it again: here the interpreter's business."""
