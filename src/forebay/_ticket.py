"""One caller's wait for something that another thread will bring about.

Nothing below the front ends blocks: pool, metadata and flush hand out tickets and return.  The front end waits
on the ticket in its own way (a thread here, an event loop elsewhere) and calls again.
"""

from __future__ import annotations

import threading
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.forebay._codec._lists import put_item, take_item
else:
    from forebay._codec._lists import put_item, take_item

_LONGEST_S: cython.double = threading.TIMEOUT_MAX
SPARE: list[Any] = []
"""Tickets that nobody is going to wake: a lock for each wait costs more than all the rest of it.

Their one wake has come and was waited for, or they were never handed on.  Only results' waits use them, for a result
wakes each of its tickets once (``BatchResult.wake_waiters``).
"""
MOST_SPARE = cython.declare(cython.Py_ssize_t, 8)


@cython.cclass
class Ticket:
    """Base of all tickets: ``wake`` is called once or more, by any thread, outside every lock of ours."""

    if not cython.compiled:
        __slots__ = ("grant",)

    def __init__(self) -> None:
        self.grant: object | None = None
        """What was granted, written under the granter's lock before ``wake``; the waiter takes it."""

    def wake(self) -> None:
        """Lets the waiter go on.  Never raises, never blocks."""
        raise TypeError("a Ticket is woken through a subclass")


@cython.final
@cython.cclass
class ThreadTicket(Ticket):
    """A ticket for a caller that blocks its own thread; signals (Ctrl-C) get through the wait."""

    if not cython.compiled:
        __slots__ = ("_lock",)

    def __init__(self) -> None:
        self.grant = None  # not by super(), which each wait for a record would pay for
        self._lock = threading.Lock()
        self._lock.acquire()

    def wake(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            pass  # woken before: a second wake adds nothing

    @cython.ccall
    @cython.exceptval(-1)
    def wait(self, timeout_ms: cython.double) -> cython.bint:
        """Waits for the next wake; False if ``timeout_ms`` passed first."""
        limit: cython.double = min(max(timeout_ms / 1000, 0.0), _LONGEST_S)
        # By position: the lock's own parsing of a keyword takes longer than all else here.
        woken: bool = self._lock.acquire(True, limit)
        return woken


@cython.final
@cython.cclass
class Latch:
    """Something that happens once, and those that wait for it; ``threading.Event`` without its lock.

    A signal handler that sets or awaits an Event amid a wait for the same one waits for its own thread.  Here each step
    is atomic: who waits joins before the last look at ``is_set``, and ``set`` wakes after it was set.
    """

    def __init__(self) -> None:
        self.is_set = False
        self.waiting: list[ThreadTicket] = []

    def set(self) -> None:
        """Lets everybody go on; again is nothing.  Any thread, a handler or finaliser too."""
        self.is_set = True
        for ticket in list(self.waiting):
            ticket.wake()

    def wait(self, timeout_ms: cython.double) -> bool:
        """Waits on the calling thread; False if ``timeout_ms`` passed first.  Signals get through."""
        if self.is_set:
            return True
        ticket: ThreadTicket = ThreadTicket()
        self.waiting.append(ticket)
        try:
            return self.is_set or ticket.wait(timeout_ms)
        finally:
            self.waiting.remove(ticket)


@cython.cfunc
def spare_ticket() -> ThreadTicket:
    """One that waits for its first wake; for ``keep_ticket``, if it gets exactly that one."""
    try:
        return take_item(SPARE, len(SPARE) - 1) if len(SPARE) > 0 else ThreadTicket()
    except IndexError:  # another thread took the last one in between
        return ThreadTicket()


@cython.cfunc
def keep_ticket(ticket: ThreadTicket) -> object:
    """Nobody is going to wake it any more."""
    if len(SPARE) < MOST_SPARE:
        put_item(SPARE, ticket)
    return None
