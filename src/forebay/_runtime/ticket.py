"""Ticket: one caller's wait, which another thread ends.

Nothing below the front ends blocks: pool, metadata and flush keep a ticket and return.  The front end waits on the
ticket in its own way (a thread here, an event loop elsewhere) and calls again.
"""

from __future__ import annotations

from threading import TIMEOUT_MAX
from typing import Any

import cython

from forebay._runtime.threads import GreenletWait, Lock, hub_of_caller

_LONGEST_S: cython.double = TIMEOUT_MAX


@cython.cclass
class Ticket:
    """Base of all tickets: ``wake`` is called once or more, by any thread, outside the package's locks."""

    if not cython.compiled:
        __slots__ = ("grant",)

    def __init__(self) -> None:
        self.grant: object | None = None
        """What was granted; written under the granter's lock before ``wake``, and taken by the waiter."""

    def wake(self) -> None:
        """Lets the waiter go on.  Never raises, never blocks."""
        raise TypeError("a Ticket is woken through a subclass")


@cython.final
@cython.cclass
class ThreadTicket(Ticket):
    """A ticket for a caller that blocks its own thread, or its own greenlet; signals (Ctrl-C) get through the wait."""

    if not cython.compiled:
        __slots__ = ("_greenlet", "_lock")

    def __init__(self) -> None:
        self.grant = None  # not by super(), which each wait for a record would pay for
        self._greenlet: GreenletWait | None = None
        self._lock = Lock()
        self._lock.acquire()

    def wake(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            pass  # woken before: a second wake adds nothing
        waiting = self._greenlet
        if waiting is not None:
            waiting.look()

    @cython.ccall
    @cython.exceptval(-1)
    def wait(self, timeout_ms: cython.double) -> cython.bint:
        """Waits for the next wake; False if ``timeout_ms`` passed first."""
        limit: cython.double = min(max(timeout_ms / 1000, 0.0), _LONGEST_S)
        hub = hub_of_caller() if limit > 0 else None
        if hub is not None:
            return self._wait_in(hub, limit)
        # By position, because parsing a keyword takes the lock longer than anything else here.
        woken: bool = self._lock.acquire(True, limit)
        return woken

    def _wait_in(self, hub: Any, limit: float) -> bool:
        waiting = self._greenlet = GreenletWait(hub)
        try:
            return waiting.until(self._is_woken, limit)
        finally:
            self._greenlet = None
            waiting.close()

    def _is_woken(self) -> bool:
        woken: bool = self._lock.acquire(False)
        return woken


class Latch:
    """Set once, by any thread; waited for by any number of threads.

    It needs no lock: a thread that waits adds its ticket before it reads the flag, so no ticket is missed.
    """

    def __init__(self) -> None:
        self._set = False
        self._waiting: list[Ticket] = []

    def is_set(self) -> bool:
        """Whether ``set`` was called."""
        return self._set

    def set(self) -> None:
        """Ends every wait, also later ones."""
        self._set = True
        for ticket in list(self._waiting):
            ticket.wake()

    def subscribe(self, ticket: Ticket) -> bool:
        """True if it is set; else the ticket is woken when it is."""
        self._waiting.append(ticket)
        if self._set:
            self._waiting.remove(ticket)
        return self._set

    def unsubscribe(self, ticket: Ticket) -> None:
        """Forgets a ticket that was subscribed."""
        self._waiting.remove(ticket)

    def wait(self, timeout_ms: float) -> bool:
        """Waits until it is set; False if ``timeout_ms`` passed first.  Signals get through."""
        ticket = ThreadTicket()
        if self.subscribe(ticket):
            return True
        try:
            return ticket.wait(timeout_ms)
        finally:
            self.unsubscribe(ticket)
