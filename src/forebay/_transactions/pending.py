"""Requests to coordinators without an answer yet, and the order in which they are sent.

A call of the transactional API makes a request and waits on its ``TransactionalResult``.  ``Pending`` is the request
until its answer.
"""

from __future__ import annotations

from typing import Any

from forebay._protocol.find_coordinator import GROUP
from forebay._transactions.initialization import Coordinator
from forebay._transactions.requests import AddOffsetsCall, AddPartitionsCall, FindCoordinatorCall, TxnOffsetCommitCall
from forebay._transactions.result import TransactionalResult


class Pending:
    """A request until its answer; the dialog's lock guards it until it is sent.

    ``attempts`` counts answers and disconnects that led to another try, which may begin at ``retry_at`` (monotonic ms).
    ``uncertain``: the broker may have done it, although no answer came.
    """

    __slots__ = ("attempts", "call", "number", "result", "retry_at", "uncertain")

    def __init__(self, call: Any, result: TransactionalResult, number: int) -> None:
        self.call = call
        self.result = result
        self.number = number
        self.attempts = 0
        self.retry_at = -1.0
        self.uncertain = False

    @property
    def survives_error(self) -> bool:
        """Whether it is still sent after the transaction failed.

        An abort needs the coordinator's address, and is needed if the coordinator may have begun the transaction.  So a
        partition that may have been added is added again before the abort.
        """
        if isinstance(self.call, FindCoordinatorCall):
            return True
        return self.uncertain and isinstance(self.call, (AddPartitionsCall, AddOffsetsCall))

    @property
    def is_for_group(self) -> bool:
        """Whether it goes to a group's coordinator, or looks that up."""
        if isinstance(self.call, FindCoordinatorCall):
            return self.call.wanted.kind == GROUP
        return isinstance(self.call, TxnOffsetCommitCall)

    def __lt__(self, other: Pending) -> bool:
        return (self.call.priority, self.number) < (other.call.priority, other.number)

    def __repr__(self) -> str:
        return f"<Pending {type(self.call).__name__}, {self.attempts} attempts>"


class RequestQueue:
    """The requests that wait, the most urgent first.  The dialog's lock guards it.

    A group's requests have their own lane (``Pending.is_for_group``).  So a slow coordinator of a group delays no
    partition that has to join the transaction.
    """

    def __init__(self) -> None:
        self._waiting: list[Pending] = []
        self._numbers = 0

    def add(self, call: Any, result: TransactionalResult) -> Pending:
        """A new request, behind those of its priority."""
        self._numbers += 1
        pending = Pending(call, result, self._numbers)
        self._waiting.append(pending)
        return pending

    def put_back(self, pending: Pending) -> None:
        """Puts a request that was taken back into its place."""
        self._waiting.append(pending)

    def take(self, pending: Pending) -> None:
        """This request does not wait any more."""
        self._waiting.remove(pending)

    def take_all(self) -> list[Pending]:
        """No request waits any more."""
        taken, self._waiting = self._waiting, []
        return taken

    def keep_survivors(self) -> list[TransactionalResult]:
        """Removes the requests that do not survive an error; returns the results of all that waited."""
        results = [pending.result for pending in self._waiting]
        self._waiting = [pending for pending in self._waiting if pending.survives_error]
        return results

    def heads(self) -> list[Pending]:
        """The first request of each lane."""
        first: dict[bool, Pending] = {}
        for pending in sorted(self._waiting):
            first.setdefault(pending.is_for_group, pending)
        return list(first.values())

    def has_for_group(self) -> bool:
        """Whether a request waits for a group's coordinator."""
        return any(pending.is_for_group for pending in self._waiting)

    def has_look_up(self, wanted: Coordinator) -> bool:
        """Whether a request for this coordinator's address waits."""
        calls = (pending.call for pending in self._waiting)
        return any(isinstance(call, FindCoordinatorCall) and call.wanted == wanted for call in calls)
