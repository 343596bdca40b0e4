"""The interpreted form of ``_mutex.pxd``: an ordinary lock.

A ``with`` block would call two Python methods when compiled, so compiled modules say ``acquire(self.lock)``, ``try``,
``finally: release(self.lock)``.  When compiled, nothing of Python's runs in between.  Interpreted, a signal handler or
a finaliser may, and may need the same lock: that is refused, for it would wait for its own thread.
"""

from __future__ import annotations

import sys
import threading
from threading import get_ident as thread_ident
from typing import Any

__all__ = ["HAS_GIL", "Mutex", "acquire", "give_way", "release", "thread_ident"]

HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether one thread runs at a time."""

Mutex = threading.RLock
"""For its knowledge of its owner; nobody takes it twice."""


def acquire(lock: Any) -> None:
    """Waits until the lock is free, and takes it.

    Raises:
        RuntimeError: the calling thread has it.
    """
    if lock._is_owned():
        raise RuntimeError(
            "a signal handler or a finaliser came amid a step of this producer, which only its compiled form lets it do"
        )
    lock.acquire()


def release(lock: Any) -> None:
    """Lets the next one have it."""
    lock.release()


def give_way(lock: Any) -> None:
    """Lets those have it who wait, before who has just let it go takes it again: here the interpreter's business."""
