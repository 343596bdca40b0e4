"""TransactionMachine: what is under way between a transactional producer and its coordinators.

It has the state and the requests that wait, and says what errors do to them.  The sender's thread takes one request
after the other and brings the answers (``answers``).  The TransactionManager has the sequences and the producer id;
this object tells it what to do.  The states are a table (``state``), the meaning of errors is another (``errors``).
Nothing here blocks or does I/O.
"""

from __future__ import annotations

import logging
from collections.abc import Container
from contextlib import AbstractContextManager
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from forebay._transactions.errors import for_call
from forebay._transactions.initialization import Coordinator, InitProducerIdCall
from forebay._transactions.partitions import TransactionPartitions
from forebay._transactions.pending import Pending, RequestQueue
from forebay._transactions.requests import (
    FIRST_OF_V2,
    AddPartitionsCall,
    EndTxnCall,
    FindCoordinatorCall,
    Identity,
    TxnOffsetCommitCall,
)
from forebay._transactions.result import TransactionalResult
from forebay._transactions.state import SOURCES, State, illegal_call
from forebay.errors import (
    IllegalStateError,
    InvalidPidMappingError,
    KafkaError,
    TransactionAbortedError,
)
from forebay.errors._base import AnyError, judged
from forebay.model import Node, TransactionIdentity

if TYPE_CHECKING:
    from forebay._runtime.backoff import ExponentialBackoff
    from forebay._transactions.manager import TransactionManager

log = logging.getLogger("forebay.transactions")

COMPLETING = frozenset({State.COMMITTING_TRANSACTION, State.ABORTING_TRANSACTION})
OPEN = COMPLETING | {State.IN_TRANSACTION, State.ABORTABLE_ERROR}
BROKEN = frozenset({State.ABORTABLE_ERROR, State.FATAL_ERROR})
FENCED = "A newer producer with the same transactional.id has taken over"


class Sealable(Protocol):
    """The accumulator's calls for a transaction, which seals it, opens it and waits for its batches."""

    def seal(self) -> None: ...

    def unseal(self) -> None: ...

    def has_incomplete(self) -> bool: ...


class LastCall(NamedTuple):
    """A call of the API whose outcome its caller has not seen; the caller may repeat it."""

    name: str
    key: object
    result: TransactionalResult


class TransactionMachine:
    """One transactional.id's requests and answers.

    Args:
        transactional_id: ``transactional.id``.
        timeout_ms: ``transaction.timeout.ms``.
        manager: has sequences, producer id and epoch.
        accumulator: sealed outside a transaction.
        backoff: between tries of a request (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        lock: re-entrant, because a finaliser or signal handler may make a call here.  Taken before the accumulator's.
            It guards all fields but ``coordinators`` and ``can_bump``, which the sender's thread owns.
    """

    def __init__(
        self,
        transactional_id: str,
        *,
        timeout_ms: int,
        manager: TransactionManager,
        accumulator: Sealable,
        backoff: ExponentialBackoff,
        lock: AbstractContextManager[Any],
    ) -> None:
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.manager = manager
        self.accumulator = accumulator
        self.backoff = backoff
        self.lock = lock
        self.state = State.UNINITIALIZED
        self.error: KafkaError | None = None
        self.version = 0
        """The version of the open transaction, or of the next one."""
        self.newest_version = -1
        """The version that the cluster has finalized, at the newest epoch seen; -1 if no broker was asked yet."""
        self.bump_required = False
        self.purge_due = False
        """Whether batches that were never sent must fail."""
        self.closed: KafkaError | None = None
        self.coordinators: dict[Coordinator, Node] = {}
        self.can_bump = True
        """Whether the coordinator, when last connected, could give another epoch to a producer (KIP-360)."""
        self.requests = RequestQueue()
        self.last_call: LastCall | None = None
        """The session's last call, until its outcome was seen."""
        self.members = TransactionPartitions()
        manager.begin_dialog(self, self.members)
        accumulator.seal()

    # ---- any thread

    @property
    def completing(self) -> bool:
        """True while a transaction is being ended: linger does not count then."""
        return self.state in COMPLETING

    @property
    def open(self) -> bool:
        """True from begin until the end was acknowledged; a fatal error ends it too."""
        return self.state in OPEN

    @property
    def identity(self) -> TransactionIdentity:
        """This producer's identity now; -1 for an id or epoch that it does not have."""
        manager = self.manager
        return TransactionIdentity(self.transactional_id, manager.producer_id, manager.producer_epoch, self.version)

    # ---- any thread, under the lock

    def enter(self, target: State, call: str) -> None:
        if self.state not in SOURCES[target]:
            raise illegal_call(self.state, call)
        self.state = target

    def who(self) -> Identity:
        return Identity(self.transactional_id, self.manager.producer_id, self.manager.producer_epoch)

    def end(self, commit: bool, result: TransactionalResult) -> None:
        target = State.COMMITTING_TRANSACTION if commit else State.ABORTING_TRANSACTION
        before = self.state
        self.enter(target, "commit_transaction" if commit else "abort_transaction")
        try:
            # No record gets in from here on, so no batch without an outcome can be added.
            self.accumulator.seal()
        except BaseException:
            # Ctrl-C may come here, because many batches take a while.  The end must still be asked for.
            self.state = before
            if before is State.IN_TRANSACTION:
                self.accumulator.unseal()
            raise
        self.purge_due = self.purge_due or not commit
        self.requests.add(EndTxnCall(self.who(), commit, self.version), result)

    def drop_identity(self, call: str) -> None:
        self.enter(State.UNINITIALIZED, call)
        self.accumulator.seal()
        self.manager.drop_identity()
        self.bump_required = False
        self.error = None

    def fail_transaction(self, error: KafkaError) -> list[TransactionalResult]:
        self.state = State.ABORTABLE_ERROR
        self.error = self.error or judged(error, requires_abort=True)
        self.accumulator.seal()
        self.purge_due = True
        # The abort asks again for what the coordinator may have done, and its caller must be free to
        # call; for the rest it is over.
        return self.requests.keep_survivors()

    # ---- the sender's thread

    def note_features(self, transaction_version: int) -> None:
        """The transaction version that the cluster has finalized; used from the next transaction on."""
        self.newest_version = transaction_version

    def next_request(self, now: float, busy: Container[bool] = ()) -> Pending | None:
        """Takes the next request out of the queue; None if there is none now.

        Args:
            busy: lanes (``Pending.is_for_group``) that cannot take a request.  A slow coordinator of a group delays no
                partition that has to join the transaction.
        """
        self._collect_partitions()
        while True:
            with self.lock:
                pending = next((head for head in self.requests.heads() if self._wait(head, now, busy) <= 0), None)
                if pending is None:
                    return None
                over = self._is_over(pending)
                self.requests.take(pending)
                if isinstance(pending.call, EndTxnCall):
                    # No batch is left to fail.  The next ones belong to another transaction.
                    self.purge_due = False
            if over:
                pending.result.settle(self.reason())
            elif self._is_needless(pending):
                self.end_of_transaction(pending.result)
            else:
                return pending

    def delay(self, now: float, busy: Container[bool] = ()) -> float:
        """Ms until ``next_request`` is worth asking again; inf if that takes an event."""
        with self.lock:
            return min((self._wait(head, now, busy) for head in self.requests.heads()), default=inf)

    def _wait(self, head: Pending, now: float, busy: Container[bool]) -> float:
        """Ms until the head of a lane may be taken out; inf if that takes an event."""
        if self._is_over(head):
            return 0.0
        if head.is_for_group in busy:
            return inf
        if isinstance(head.call, EndTxnCall):
            grouped = True in busy or self.requests.has_for_group()
            # Batches are checked now that the end was asked for, because more may come in before.
            if grouped or self.accumulator.has_incomplete():
                return inf
        if self.state is State.ABORTABLE_ERROR and not isinstance(head.call, FindCoordinatorCall):
            return inf  # it survives, for the abort
        return max(0.0, head.retry_at - now)

    def _is_over(self, pending: Pending) -> bool:
        if self.state is State.ABORTING_TRANSACTION:
            # The transaction is aborted, so offsets must not delay the abort while their group cannot be reached.
            return pending.is_for_group
        return self.state is State.FATAL_ERROR or (self.state is State.ABORTABLE_ERROR and not pending.survives_error)

    def _is_needless(self, pending: Pending) -> bool:
        if not isinstance(pending.call, EndTxnCall):
            return False
        # A coordinator that forgot the id would refuse it too.
        return not self.members.started or self._is_forgotten()

    def _is_forgotten(self) -> bool:
        return isinstance(self.error, InvalidPidMappingError)

    def _collect_partitions(self) -> None:
        if not self.members.fresh:
            return
        partitions = self.members.take_fresh()
        with self.lock:
            if self.state in (State.IN_TRANSACTION, State.COMMITTING_TRANSACTION):
                self.requests.add(AddPartitionsCall(self.who(), partitions), TransactionalResult())

    def look_up(self, wanted: Coordinator, retry_at: float = -inf) -> None:
        """Looks up the coordinator of ``wanted``, unless a look-up is under way."""
        self.coordinators.pop(wanted, None)
        with self.lock:
            if not self.requests.has_look_up(wanted):
                self.requests.add(FindCoordinatorCall(wanted), TransactionalResult()).retry_at = retry_at

    def put_back(self, pending: Pending) -> None:
        """A request could not be sent, or its connection ended before the answer."""
        with self.lock:
            reason = self.closed
            if reason is None:
                self.requests.put_back(pending)
                if self.state is State.ABORTABLE_ERROR:
                    reason = self.reason()  # if it is sent again, then by the abort
        if reason is not None:
            pending.result.settle(reason)

    def try_again(self, pending: Pending, now: float, at_most_ms: float = inf) -> None:
        """Sends the same request again after its backoff, ahead of others."""
        pending.retry_at = now + min(self.backoff.delay(pending.attempts), at_most_ms)
        pending.attempts += 1
        self.put_back(pending)

    def enqueue_commit(self, commit: TxnOffsetCommitCall, result: TransactionalResult) -> None:
        """Adds the request that commits the offsets, the second half of sending them."""
        with self.lock:
            if self.state not in BROKEN and self.state is not State.ABORTING_TRANSACTION:
                self.requests.add(commit, result)
                return
        result.settle(self.reason())

    def reason(self) -> KafkaError:
        """The error of a call whose request is not sent, or not sent again, because of the state."""
        return TransactionAbortedError() if self.error is None else for_call(self.error)

    def judge(self, error: AnyError) -> AnyError:
        """The error that a record's owner gets: it says whether the transaction can go on."""
        if self.state not in BROKEN:
            return error
        fatal = self.state is State.FATAL_ERROR
        return judged(error, fatal=fatal, requires_abort=not fatal)

    def abortable(self, error: KafkaError) -> None:
        """The transaction can only be aborted; an error while that is under way changes nothing."""
        failed: list[TransactionalResult] = []
        with self.lock:
            ignored = self.state in (State.ABORTING_TRANSACTION, State.FATAL_ERROR)
            illegal = not ignored and self.state not in SOURCES[State.ABORTABLE_ERROR]
            if not ignored and not illegal:
                failed = self.fail_transaction(error)
        if illegal:
            self._poison(State.ABORTABLE_ERROR, error)
        elif not ignored:
            log.info("The transaction of '%s' can only be aborted: %s", self.transactional_id, error)
        for result in failed:
            result.settle(self.reason())

    def abortable_with_bump(self, error: KafkaError) -> None:
        """As ``abortable``, and another epoch follows the abort; fatal if the coordinator gives none."""
        if not self.can_bump:
            self.fatal(error)
            return
        self.bump_required = True
        self.abortable(error)

    def forget(self) -> None:
        """The coordinator does not know this producer id any more: nothing is left to end, and another id is needed."""
        with self.lock:
            self.error = InvalidPidMappingError()
            self.bump_required = True

    def on_failed_batch(self, error: KafkaError) -> None:
        """A record failed for good."""
        if self.state is not State.ABORTING_TRANSACTION:
            self.bump_required = True
        self.abortable(error)

    def fatal(self, error: KafkaError) -> None:
        """The producer cannot go on: every call, request and record fails from here on."""
        with self.lock:
            if self.state is State.FATAL_ERROR:
                return
            self.state = State.FATAL_ERROR
            self.error = error = judged(error, fatal=True)
            self.accumulator.seal()
            waiting = self.requests.take_all()
        self.manager.fail(error)
        for pending in waiting:
            pending.result.settle(self.reason())

    def _poison(self, target: State, cause: KafkaError | None = None) -> None:
        # An illegal move on the sender's thread is a bug, so nothing after it can be trusted.
        error = IllegalStateError(f"Invalid transition attempted from state {self.state.value} to state {target.value}")
        error.__cause__ = cause
        self.fatal(error)

    def refused(self, error: KafkaError) -> None:
        """No permission for a producer id: the state is as at the start, and another try may succeed."""
        with self.lock:
            legal = self.state is State.INITIALIZING
            if legal:
                self.state = State.ABORTABLE_ERROR
                self.drop_identity("init_transactions")
        if legal:
            log.warning("No producer id for '%s': %s", self.transactional_id, error)
        else:
            self._poison(State.UNINITIALIZED, error)

    def end_of_transaction(self, result: TransactionalResult) -> None:
        """The coordinator has ended the transaction, or there was nothing to end; another epoch may follow."""
        with self.lock:
            bump = self.can_bump and self._needs_bump()
            legal = self.state in COMPLETING
            if legal and (bump or not self.manager.has_producer_id):
                self.state = State.INITIALIZING
                known = self.who()[1:] if bump else ()
                self.requests.add(InitProducerIdCall(self.transactional_id, self.timeout_ms, *known), result)
                return
        if legal:
            self.ready(result)
            return
        self._poison(State.READY)
        result.settle(self.error)

    def _needs_bump(self) -> bool:
        if not self.manager.has_producer_id:
            return False
        if self.version < FIRST_OF_V2 <= self.newest_version:
            return True  # version 2 begins with an epoch that version 1 never used
        wanted = self.bump_required or bool(self.members.damaged)
        return wanted and (self.version < FIRST_OF_V2 or self._is_forgotten())

    def ready(self, result: TransactionalResult) -> None:
        """A transaction may begin, under the id and epoch that the manager has by now."""
        stuck = self.members.mend()
        with self.lock:
            legal = self.state in SOURCES[State.READY]
            if legal and stuck is None:
                self.state = State.READY
                self.error = None
                self.bump_required = False
                if self.newest_version >= 0:
                    self.version = self.newest_version
        if stuck is not None:
            self.fatal(stuck)
        elif not legal:
            self._poison(State.READY)
        result.settle(self.error)

    def purge_reason(self) -> KafkaError | None:
        """The error for batches that were never sent, returned once; None if they may go on."""
        if not self.purge_due:
            return None
        with self.lock:
            self.purge_due = False
            return self.error or TransactionAbortedError()

    # ---- the end, on the sender's thread

    def has_work(self) -> bool:
        """Whether the producer must wait for a coordinator's answer before it ends.

        A request for an id counts only while a caller waits for it, because nothing is lost without it.
        """
        call = self.last_call
        awaited = call is not None and call.result.awaited
        return self.closed is None and (self.open or (awaited and self.state is State.INITIALIZING))

    def abort_for_close(self) -> bool:
        """Aborts the open transaction unless it is being ended; False if there is nothing to abort."""
        with self.lock:
            if self.state not in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
                return False
            self.end(False, TransactionalResult())
        log.warning("The producer of '%s' was closed with an open transaction, which is aborted", self.transactional_id)
        return True

    def close(self, error: KafkaError) -> None:
        """Nothing is sent any more: each waiting caller gets ``error``."""
        with self.lock:
            left_open = self.open and self.closed is None
            self.closed = error
            waiting = self.requests.take_all()
            call = self.last_call
        if left_open:
            log.warning(
                "The producer of '%s' ended in state %s: if the coordinator knows of a transaction, it ends it after "
                "transaction.timeout.ms (%d ms)",
                self.transactional_id,
                self.state.value,
                self.timeout_ms,
            )
        for pending in waiting:
            pending.result.settle(error)
        if call is not None:
            call.result.settle(error)
