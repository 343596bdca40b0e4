"""What a transactional call waits for: settled once by the sender's thread, waited for by any number of callers."""

from __future__ import annotations

from forebay._runtime.ticket import ThreadTicket, Ticket
from forebay.errors import KafkaError


class TransactionalResult:
    """The outcome of one call of the transactional API.

    ``acknowledged``: somebody has seen the outcome, so that the next call may be another one.
    """

    __slots__ = ("_waiters", "acknowledged", "done", "error")

    def __init__(self) -> None:
        # Appended to by callers, taken as a whole by the sender's thread after ``done`` is set.  A caller looks at
        # ``done`` again after it appended, so none is forgotten and no lock is needed.
        self._waiters: list[Ticket] = []
        self.done = False
        self.error: KafkaError | None = None
        self.acknowledged = False

    @property
    def awaited(self) -> bool:
        """Whether somebody waits now."""
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
        self._waiters.append(ticket)
        try:
            if not self.done and not ticket.wait(timeout_ms):
                return False
        finally:
            self._waiters.remove(ticket)
        self.acknowledged = True
        return True

    def __repr__(self) -> str:
        return f"<TransactionalResult: {'pending' if not self.done else self.error or 'done'}>"
