"""One caller's wait for something that another thread will bring about.

Nothing below the front ends blocks: pool, metadata and flush hand out tickets and return.  The front end waits
on the ticket in its own way (a thread here, an event loop elsewhere) and calls again.
"""

from __future__ import annotations

import threading


class Ticket:
    """Base of all tickets: ``wake`` is called once or more, by any thread, outside every lock of ours."""

    __slots__ = ("grant",)

    def __init__(self) -> None:
        self.grant: object | None = None
        """What was granted, written under the granter's lock before ``wake``; the waiter takes it."""

    def wake(self) -> None:
        """Lets the waiter go on.  Never raises, never blocks."""
        raise TypeError("a Ticket is woken through a subclass")


class ThreadTicket(Ticket):
    """A ticket for a caller that blocks its own thread; signals (Ctrl-C) get through the wait."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._lock.acquire()

    def wake(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            pass  # woken before: a second wake adds nothing

    def wait(self, timeout_ms: float) -> bool:
        """Waits for the next wake; False if ``timeout_ms`` passed first."""
        limit = min(max(timeout_ms, 0) / 1000, threading.TIMEOUT_MAX)
        return self._lock.acquire(timeout=limit)
