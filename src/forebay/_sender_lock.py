"""What a thread holds that a sender's thread needs, and whether it may wait for that thread meanwhile.

A signal handler or a finaliser runs on the thread that it interrupts.  If it waits for the sender's thread (flush,
close, result), and that waits for what the interrupted call holds, both wait for ever.  So each wait asks ``may_wait``
first: batches that are being compressed are left to the sender then, and a lock is a reason to refuse.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.forebay._this_thread import count_of_thread, count_on_thread
else:
    from forebay._this_thread import count_of_thread, count_on_thread

AMID_A_LOCK = (
    "%s was called by a signal handler or a finaliser that came amid another call, while that held a lock which the "
    "sender's thread needs: it would wait for itself. Have the handler leave a note, and wait outside of it"
)
"""Why a wait is refused; %s is the call."""

IN_HAND: list[tuple[int, Callable[[], object]]] = []
"""Of each thread that does a part of a sender's work: its number, and what leaves that work to the sender.

Mostly empty.  Each step on it is atomic, for a handler may add to it, too.
"""


@cython.final
@cython.cclass
class SenderLock:
    """A lock that a sender's thread takes too; re-entrant, because a handler may make calls of its own.

    Compiled, so that nothing comes between taking the lock and noting it.  Only for code that stays interpreted: a
    compiled section without calls of Python code has no place for a handler, and needs none of this.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def __enter__(self) -> None:
        # First: a handler that comes while the lock is waited for is refused too, and needs no care of its own.
        count_on_thread(1)
        try:
            self.lock.acquire()
        except BaseException:
            count_on_thread(-1)
            raise

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            self.lock.release()
        finally:
            count_on_thread(-1)


@cython.final
@cython.cclass
class Hold:
    """``with Hold(lock, timeout_s) as held``: an ordinary lock of Python's with a time limit; ``held`` may be False.

    Compiled for the same reason: Ctrl-C between ``acquire`` and a ``try`` would leave it taken for ever.
    """

    def __init__(self, lock: object, timeout_s: float) -> None:
        self.lock: Any = lock
        self.timeout_s = min(timeout_s, threading.TIMEOUT_MAX)
        self.held = False

    def __enter__(self) -> bool:
        self.held = self.lock.acquire(True, self.timeout_s)
        return self.held

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if self.held:
            self.held = False
            self.lock.release()


@cython.ccall
@cython.exceptval(-1)
def may_wait() -> cython.bint:
    """Whether the calling thread may wait for a sender's; lets go of what it has in hand.

    False for a handler or finaliser that came amid a lock.
    """
    if len(IN_HAND) > 0:
        leave_to_sender(threading.get_ident())
    return count_of_thread() == 0


def leave_to_sender(thread: int) -> None:
    """Leaves to the senders what ``thread`` has in hand."""
    for owner, leave in list(IN_HAND):
        if owner == thread:
            leave()
