"""TransactionCalls: the transactional calls of the application's threads, as moves of the state and requests.

No call here blocks: a caller waits on the TransactionalResult.  Outside a transaction the accumulator is sealed, so
no record can get in between a commit and the next transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from forebay._protocol.find_coordinator import TRANSACTION
from forebay._transactions.dialog import BROKEN, FENCED, LastCall, TransactionMachine
from forebay._transactions.errors import for_call
from forebay._transactions.initialization import Coordinator, InitProducerIdCall
from forebay._transactions.requests import FIRST_OF_V2, AddOffsetsCall, TxnOffsetCommitCall
from forebay._transactions.result import TransactionalResult
from forebay._transactions.state import State, illegal_call
from forebay.errors import IllegalStateError, KafkaError, ProducerClosedError, ProducerFencedError
from forebay.errors._base import AnyError
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition, TransactionIdentity


class TransactionCalls:
    """The calls of one transactional.id; any thread but the sender's.

    Args:
        dialog: the state, the lock that guards it, and the requests that the calls begin.
    """

    def __init__(self, dialog: TransactionMachine) -> None:
        self.dialog = dialog

    def initialize(self, given: TransactionIdentity | None = None) -> TransactionalResult:
        """Asks for a producer id, or takes the given one.  That ends the open transaction of an earlier owner.

        Raises:
            IllegalStateError: it has one, or another call was not finished.
        """
        dialog = self.dialog

        def start(result: TransactionalResult) -> None:
            if dialog.state is not State.UNINITIALIZED:
                # The move from an abort to another epoch is not the caller's to make.
                raise illegal_call(dialog.state, "init_transactions")
            dialog.state = State.INITIALIZING
            if given is None:
                dialog.requests.add(InitProducerIdCall(dialog.transactional_id, dialog.timeout_ms), result)
                return
            dialog.manager.set_identity(given.producer_id, given.producer_epoch)
            dialog.version = given.transaction_version
            dialog.enter(State.READY, "init_transactions")
            result.settle()

        return self._operation("init_transactions", start, given)

    def begin(self) -> None:
        """Opens a transaction; nothing is sent.

        Raises:
            IllegalStateError: the state does not allow it.
            KafkaError: the producer is in an error state.
        """
        dialog = self.dialog
        with dialog.lock:
            self._check_call("begin_transaction")
            dialog.enter(State.IN_TRANSACTION, "begin_transaction")
            dialog.members.begin(dialog.version >= FIRST_OF_V2)
            dialog.accumulator.unseal()

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> TransactionalResult:
        """Commits a group's offsets with the transaction.

        Raises:
            IllegalStateError: there is no transaction.
            KafkaError: the producer is in an error state.
        """
        dialog = self.dialog

        def start(result: TransactionalResult) -> None:
            if dialog.state is not State.IN_TRANSACTION:
                raise illegal_call(dialog.state, "send_offsets_to_transaction")
            commit = TxnOffsetCommitCall(dialog.who(), group, dict(offsets), dialog.version)
            if dialog.version >= FIRST_OF_V2:
                dialog.members.mark_started()
                dialog.requests.add(commit, result)
            else:
                dialog.requests.add(AddOffsetsCall(dialog.who(), commit), result)

        return self._operation("send_offsets_to_transaction", start, (dict(offsets), group))

    def commit(self) -> TransactionalResult:
        """Ends the transaction once every batch has its outcome; no record gets in from here on.

        Raises:
            IllegalStateError: there is no transaction.
            KafkaError: a record failed, so that it can only be aborted; or the producer is in an error state.
        """
        return self._operation("commit_transaction", lambda result: self.dialog.end(True, result))

    def abort(self, *, without_offsets: bool = False) -> TransactionalResult:
        """Ends the transaction without effect.  Records that were not sent fail; those in flight are finished first.

        Args:
            without_offsets: also if a call of ``send_offsets`` has no outcome that its caller has seen.

        Raises:
            IllegalStateError: there is no transaction.
            KafkaError: the producer is in a fatal error state.
        """
        dialog = self.dialog
        with dialog.lock:
            call = dialog.last_call
            if without_offsets and call is not None and call.name == "send_offsets_to_transaction":
                dialog.last_call = None
        return self._operation("abort_transaction", lambda result: dialog.end(False, result))

    def detach(self, unfinished: Callable[[], int]) -> TransactionIdentity:
        """Leaves the open transaction to another process, which ends it.

        Args:
            unfinished: how many records have no outcome.

        Raises:
            IllegalStateError: no transaction is open, it is empty, or records are without outcome.
            KafkaError: a record failed.
        """
        dialog = self.dialog
        with dialog.lock:
            self._check_call("detach_transaction")
            if dialog.state is not State.IN_TRANSACTION:
                raise illegal_call(dialog.state, "detach_transaction")
            dialog.accumulator.seal()
            left = unfinished()
            if left or not dialog.members.started:
                dialog.accumulator.unseal()
                raise IllegalStateError(
                    f"Cannot detach a transaction with {left} record(s) without outcome: flush() first"
                    if left
                    else "Cannot detach a transaction in which nothing was sent: a coordinator cannot commit it;"
                    " abort_transaction() ends it"
                )
            identity = dialog.identity
            dialog.drop_identity("detach_transaction")
            return identity

    def rename(self, transactional_id: str) -> None:
        """Sets another transactional.id, which must be initialized.

        Raises:
            IllegalStateError: a transaction is open, or a call was not finished.
            KafkaError: the producer is in an error state.
        """
        dialog = self.dialog
        with dialog.lock:
            self._check_call("set_transactional_id")
            if dialog.state is not State.UNINITIALIZED:
                if dialog.state is not State.READY:
                    raise illegal_call(dialog.state, "set_transactional_id")
                dialog.drop_identity("set_transactional_id")
            dialog.coordinators.pop(Coordinator(TRANSACTION, dialog.transactional_id), None)
            dialog.transactional_id = transactional_id

    def note_failed_send(self, error: AnyError) -> AnyError:
        """A record was refused before it came into a batch.  Its caller may not notice, so the transaction fails.

        A transaction that is being ended does not fail: the record was not part of it, and its end may be decided.

        Returns:
            ``error`` for the record's owner.
        """
        dialog = self.dialog
        failed: list[TransactionalResult] = []
        with dialog.lock:
            if dialog.state is State.IN_TRANSACTION:
                failed = dialog.fail_transaction(error)
        for result in failed:
            result.settle(dialog.reason())
        return dialog.judge(error)

    def refusal(self) -> KafkaError:
        """Why no record is taken now."""
        # Without the lock, which would come before the appending thread's.  So the answer may be a moment old.
        return self._unusable() or illegal_call(self.dialog.state, "send")

    def is_refusal(self, error: KafkaError) -> bool:
        """Whether ``error`` came from ``refusal``, because the producer is in an error state."""
        return error.__cause__ is not None and error.__cause__ is self.dialog.error

    # ---- under the lock

    def _operation(
        self, name: str, start: Callable[[TransactionalResult], None], key: object = None
    ) -> TransactionalResult:
        dialog = self.dialog
        with dialog.lock:
            call = dialog.last_call
            if call is not None and not call.result.acknowledged and (call.name, call.key) == (name, key):
                return call.result
            self._check_call(name)
            result = TransactionalResult()
            start(result)
            dialog.last_call = LastCall(name, key, result)
            return result

    def _check_call(self, name: str) -> None:
        dialog = self.dialog
        call = dialog.last_call
        if call is not None and not call.result.acknowledged:
            raise IllegalStateError(
                f"Cannot attempt operation `{name}` because the previous call to `{call.name}` timed out and must be "
                "retried" + (" with the same arguments" if call.name == name else "")
            )
        if dialog.closed is not None:
            raise ProducerClosedError()
        if name == "abort_transaction" and dialog.state is State.ABORTABLE_ERROR:
            return
        error = self._unusable()
        if error is not None:
            raise error

    def _unusable(self) -> KafkaError | None:
        dialog = self.dialog
        error = dialog.error
        if error is None or dialog.state not in BROKEN:
            return None
        if isinstance(error, ProducerFencedError):
            return ProducerFencedError(
                f"{FENCED}: the one with transactional.id '{dialog.transactional_id}', producer id "
                f"{dialog.manager.producer_id} and epoch {dialog.manager.producer_epoch} cannot go on"
            )
        if isinstance(error, IllegalStateError):
            return for_call(
                error,
                f"The producer with transactional.id '{dialog.transactional_id}' cannot execute transactional method "
                "because of previous invalid state transition attempt: ",
            )
        return for_call(error, "Cannot execute transactional method because we are in an error state: ")
