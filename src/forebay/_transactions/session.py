"""TransactionSession: the transactional calls of the application's threads, as moves of the state and requests.

No call here blocks: a caller waits on the TransactionalResult.  Outside a transaction the accumulator is sealed, so
that no record can slip in between a commit and the next transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from forebay._protocol.find_coordinator import TRANSACTION
from forebay._transactions.dialog import LastCall, TransactionDialog
from forebay._transactions.initialization import Coordinator, InitProducerIdCall
from forebay._transactions.requests import (
    FIRST_OF_V2,
    AddOffsetsCall,
    TxnOffsetCommitCall,
)
from forebay._transactions.result import TransactionalResult
from forebay._transactions.state import State, illegal_call
from forebay.errors import IllegalStateError, KafkaError, ProducerClosedError
from forebay.errors._base import AnyError
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition, TransactionIdentity


class TransactionSession(TransactionDialog):
    """A TransactionDialog with the calls that start something; any thread but the sender's."""

    def initialize(self, given: TransactionIdentity | None = None) -> TransactionalResult:
        """Asks for a producer id, which ends what an earlier owner of the transactional.id left open; or takes one.

        Raises:
            IllegalStateError: it has one, or another call was not finished.
        """

        def start(result: TransactionalResult) -> None:
            if self.state is not State.UNINITIALIZED:
                # The way from an abort to another epoch is not the owner's.
                raise illegal_call(self.state, "init_transactions")
            self.state = State.INITIALIZING
            if given is None:
                self._enqueue(InitProducerIdCall(self.transactional_id, self.timeout_ms), result)
                return
            self.manager.set_identity(given.producer_id, given.producer_epoch)
            self.version = given.transaction_version
            self._enter(State.READY, "init_transactions")
            result.settle()

        return self._operation("init_transactions", start, given)

    def begin(self) -> None:
        """Opens a transaction; nothing is sent.

        Raises:
            IllegalStateError: the state does not allow it.
            KafkaError: the producer is in an error state.
        """
        with self.lock:
            self._check_call("begin_transaction")
            self._enter(State.IN_TRANSACTION, "begin_transaction")
            self.members.begin(self.version >= FIRST_OF_V2)
            self.accumulator.unseal()

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> TransactionalResult:
        """Commits a group's offsets with the transaction.

        Raises:
            IllegalStateError: there is no transaction.
            KafkaError: the producer is in an error state.
        """

        def start(result: TransactionalResult) -> None:
            if self.state is not State.IN_TRANSACTION:
                raise illegal_call(self.state, "send_offsets_to_transaction")
            commit = TxnOffsetCommitCall(self._who(), group, dict(offsets), self.version)
            if self.version >= FIRST_OF_V2:
                self.members.mark_started()
                self._enqueue(commit, result)
            else:
                self._enqueue(AddOffsetsCall(self._who(), commit), result)

        return self._operation("send_offsets_to_transaction", start, (dict(offsets), group))

    def commit(self) -> TransactionalResult:
        """Ends the transaction once every batch has its outcome; no record gets in from here on.

        Raises:
            IllegalStateError: there is no transaction.
            KafkaError: a record failed, so that it can only be aborted; or the producer is in an error state.
        """
        return self._operation("commit_transaction", lambda result: self._complete(True, result))

    def abort(self, *, without_offsets: bool = False) -> TransactionalResult:
        """Ends the transaction without effect; records that were not sent fail, those that were are finished first.

        Args:
            without_offsets: also if nobody waits for the outcome of ``send_offsets`` any more.

        Raises:
            IllegalStateError: there is no transaction.
            KafkaError: the producer is in a fatal error state.
        """
        with self.lock:
            if without_offsets and self._call is not None and self._call.name == "send_offsets_to_transaction":
                self._call = None
        return self._operation("abort_transaction", lambda result: self._complete(False, result))

    def detach(self, unfinished: Callable[[], int]) -> TransactionIdentity:
        """Leaves the open transaction to another process, which ends it.

        Args:
            unfinished: how many records have no outcome.

        Raises:
            IllegalStateError: no transaction is open, it is empty, or records are without outcome.
            KafkaError: a record failed.
        """
        with self.lock:
            self._check_call("detach_transaction")
            if self.state is not State.IN_TRANSACTION:
                raise illegal_call(self.state, "detach_transaction")
            self.accumulator.seal()
            left = unfinished()
            if left or not self.members.started:
                self.accumulator.unseal()
                raise IllegalStateError(
                    f"Cannot detach a transaction with {left} record(s) without outcome: flush() first"
                    if left
                    else "Cannot detach a transaction in which nothing was sent: a coordinator cannot commit it;"
                    " abort_transaction() ends it"
                )
            identity = self.identity
            self._forget_identity("detach_transaction")
            return identity

    def rename(self, transactional_id: str) -> None:
        """Another transactional.id from here on; it has to be initialized.

        Raises:
            IllegalStateError: a transaction is open, or a call was not finished.
            KafkaError: the producer is in an error state.
        """
        with self.lock:
            self._check_call("set_transactional_id")
            if self.state is not State.UNINITIALIZED:
                if self.state is not State.READY:
                    raise illegal_call(self.state, "set_transactional_id")
                self._forget_identity("set_transactional_id")
            self.coordinators.pop(Coordinator(TRANSACTION, self.transactional_id), None)
            self.transactional_id = transactional_id

    def note_failed_send(self, error: AnyError) -> AnyError:
        """A record was refused before it came into a batch, and its caller may not look: the transaction fails.

        Not one that is being ended already: no record that is still on its way in is part of it, and its end may be
        decided by now.

        Returns:
            ``error`` for the record's owner.
        """
        failed: list[TransactionalResult] = []
        with self.lock:
            if self.state is State.IN_TRANSACTION:
                failed = self._abort_later(error)
        for result in failed:
            result.settle(self._reason())
        return self.judge(error)

    def refusal(self) -> KafkaError:
        """Why no record is taken now."""
        # Without the lock, which is taken before the appending thread's: what it says may be a moment old.
        return self._unusable() or illegal_call(self.state, "send")

    def is_refusal(self, error: KafkaError) -> bool:
        """Whether ``error`` is ``refusal``'s, because of the error that the producer is in."""
        return error.__cause__ is not None and error.__cause__ is self.error

    # ---- under the lock

    def _operation(
        self, name: str, start: Callable[[TransactionalResult], None], key: object = None
    ) -> TransactionalResult:
        with self.lock:
            call = self._call
            if call is not None and not call.result.acknowledged and (call.name, call.key) == (name, key):
                return call.result
            self._check_call(name)
            result = TransactionalResult()
            start(result)
            self._call = LastCall(name, key, result)
            return result

    def _check_call(self, name: str) -> None:
        call = self._call
        if call is not None and not call.result.acknowledged:
            raise IllegalStateError(
                f"Cannot attempt operation `{name}` because the previous call to `{call.name}` timed out and must be "
                "retried" + (" with the same arguments" if call.name == name else "")
            )
        if self.closed is not None:
            raise ProducerClosedError()
        if name == "abort_transaction" and self.state is State.ABORTABLE_ERROR:
            return
        error = self._unusable()
        if error is not None:
            raise error
