"""TransactionalResult: what a caller waits for while the sender's thread does the work."""

from __future__ import annotations

from forebay._runtime.ticket import ThreadTicket, Ticket
from forebay.errors import KafkaError


class TransactionalResult:
    """The outcome of a call that the sender's thread carries out: of the transactional API, of ``purge`` and others.

    ``acknowledged``: a caller has seen the outcome, so the next call may be another one.
    """

    __slots__ = ("_waiters", "acknowledged", "done", "error")

    def __init__(self) -> None:
        # Callers append to it; the sender's thread takes it as a whole after it has set ``done``.  A caller reads
        # ``done`` again after it appended, so no caller is missed and no lock is needed.
        self._waiters: list[Ticket] = []
        self.done = False
        self.error: KafkaError | None = None
        self.acknowledged = False

    @property
    def awaited(self) -> bool:
        """Whether a caller waits now."""
        return bool(self._waiters)

    def settle(self, error: KafkaError | None = None) -> None:
        """Sets the outcome, unless it is set; None is success.  Sender thread, outside of locks."""
        if self.done:
            return
        self.error = error
        self.done = True
        for ticket in list(self._waiters):
            ticket.wake()

    def wait(self, timeout_ms: float) -> bool:
        """Waits on this thread; False if ``timeout_ms`` passed first.  Signals get through."""
        ticket = ThreadTicket()
        try:
            if not self.subscribe(ticket) and not ticket.wait(timeout_ms):
                return False
        finally:
            self.unsubscribe(ticket)
        self.acknowledged = True
        return True

    def subscribe(self, ticket: Ticket) -> bool:
        """True if the outcome is there; if not, the ticket is woken when it is.  ``unsubscribe`` it in any case."""
        self._waiters.append(ticket)
        return self.done

    def unsubscribe(self, ticket: Ticket) -> None:
        """Forgets the ticket."""
        self._waiters.remove(ticket)

    def __repr__(self) -> str:
        return f"<TransactionalResult: {'pending' if not self.done else self.error or 'done'}>"
