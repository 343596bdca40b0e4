"""Locks that the sender's thread takes too, and whether a thread that holds one may wait for the sender's thread.

A signal handler or a finaliser runs on the thread that it interrupts.  It may wait for the sender's thread (flush,
close, result) while the sender's thread waits for what the interrupted call holds.  Both would wait for ever.  So each
wait asks ``may_wait`` first.  That leaves a batch that the thread is compressing to the sender, and refuses the wait
under a lock.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import TIMEOUT_MAX
from typing import Any

import cython
from cython.cimports.forebay._runtime.this_thread import count_of_thread, count_on_thread

from forebay._runtime.threads import RLock, get_ident
from forebay.errors import IllegalStateError

AMID_A_LOCK = (
    "%s was called by a signal handler or a finaliser that interrupted another call while that held a lock which the "
    "sender's thread needs, so it would wait for itself; set a flag in the handler and wait outside of it"
)
"""Why a wait is refused; %s is the call."""

IN_HAND: list[tuple[int, Callable[[], object]]] = []
"""For each thread that does a part of a sender's work: its number, and a call that leaves that work to the sender.

Mostly empty.  Each step on it is atomic, because a handler may add to it too.
"""


@cython.final
@cython.cclass
class SenderLock:
    """A lock that a sender's thread takes too; re-entrant, because a handler may make calls of its own.

    Compiled, so that no handler runs between taking the lock and noting it.  Only for interpreted code: a handler
    cannot interrupt a compiled section that calls no Python code.
    """

    def __init__(self) -> None:
        self.lock = RLock()

    def __enter__(self) -> None:
        # Before the lock: a handler that runs while this waits for the lock is then refused too.
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
        self.timeout_s = min(timeout_s, TIMEOUT_MAX)
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
    """Whether the calling thread may wait for a sender's; first leaves the work in ``IN_HAND`` to the sender.

    False in a handler or finaliser that interrupted code which holds a SenderLock.
    """
    if len(IN_HAND) > 0:
        leave_to_sender(get_ident())
    return count_of_thread() == 0


@cython.ccall
@cython.exceptval(-1)
def check_wait(call: str) -> cython.int:
    """To be called before a wait for a sender's thread.

    Raises:
        IllegalStateError: see ``may_wait``; ``call`` says what was refused.
    """
    if not may_wait():
        raise IllegalStateError(AMID_A_LOCK % call)
    return 0


def leave_to_sender(thread: int) -> None:
    """Leaves the work of ``thread`` in ``IN_HAND`` to the senders."""
    for owner, leave in list(IN_HAND):
        if owner == thread:
            leave()
