"""The transactional half of the producer: init, begin, send offsets, commit, abort, and what a committer needs.

Any thread but the sender's may call them.  A call waits at most ``max.block.ms``, or the given time.  After a
KafkaTimeoutError or Ctrl-C the same call, made again, waits for the same outcome; until then only it and ``close`` are
allowed.

A broker's refusal is raised as the error of its code.  In an error state every call raises an error of the class of the
first error, which is its cause.  ``fatal`` says that the producer cannot go on, ``txn_requires_abort`` that it can
after an abort.  If that class is a RetriableError, such as the KafkaTimeoutError of an expired record, the error
raised is a TransactionAbortableError: no repeated call brings the record back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from forebay._assembly import Components
from forebay._delivery.sender_lock import check_wait
from forebay._metrics.sensor import SharedSensor
from forebay._runtime.times import seconds
from forebay._transactions.state import State
from forebay.errors import (
    ForkedProducerError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerClosedError,
)
from forebay.errors._base import caused, own_copy
from forebay.model import TopicPartition, TransactionIdentity
from forebay.model._wire import check_text

if TYPE_CHECKING:
    from forebay._runtime.times import Seconds
    from forebay._transactions.result import TransactionalResult
    from forebay._transactions.session import TransactionCalls
    from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata


class Call(NamedTuple):
    """A call of the transactional API that was begun, and is to be waited for."""

    name: str
    result: TransactionalResult
    limit: float
    """Ms."""
    sensor: SharedSensor
    begun: float
    """Monotonic ms."""


class TransactionalCalls:
    """A base of KafkaProducer; without a ``transactional.id`` each call raises IllegalStateError."""

    _parts: Components

    # The transaction's identity

    @property
    def transactional_id(self) -> str | None:
        """``transactional.id``, or the one set last; None for a producer without transactions."""
        session = self._parts.session
        return None if session is None else session.dialog.transactional_id

    @property
    def producer_id(self) -> int:
        """The id that batches are stamped with; -1 while there is none."""
        manager = self._parts.transactions
        return -1 if manager is None else manager.producer_id

    @property
    def producer_epoch(self) -> int:
        """The epoch of the id; -1 while there is none."""
        manager = self._parts.transactions
        return -1 if manager is None else manager.producer_epoch

    @property
    def transaction_version(self) -> int:
        """Of the open transaction or the next one: 2 if brokers add partitions by themselves (KIP-890), else 0 or 1."""
        session = self._parts.session
        return 0 if session is None else session.dialog.version

    # The transaction

    def init_transactions(self, timeout: Seconds | None = None, *, identity: TransactionIdentity | None = None) -> None:
        """Must be called once before the first transaction; fences older producers with the same transactional.id.

        What they left open is aborted, what they had begun to commit is finished.

        Args:
            timeout: seconds; None for ``max.block.ms``.
            identity: goes on under this producer id and epoch instead of asking for one (it must have this
                producer's transactional.id); sequences begin at 0.

        Raises:
            KafkaTimeoutError: no coordinator answered in time; call it again.
            IllegalStateError: it was called before, or there is no transactional.id.
            KafkaError: the coordinator refused (authorization: it may be tried again; everything else is final).
        """
        self._await(self._init_call(timeout, identity))

    def _init_call(self, timeout: Seconds | None, identity: TransactionIdentity | None) -> Call:
        session = self._session("init_transactions")
        limit = self._limit(timeout)
        if identity is not None:
            _check_identity(identity, session.dialog.transactional_id)
        sensor = self._parts.metrics.txn_init_ns
        return self._call("init_transactions", lambda: session.initialize(identity), limit, sensor)

    def begin_transaction(self) -> None:
        """Opens a transaction; all records sent from here on belong to it.

        Raises:
            IllegalStateError: one is open, or ``init_transactions`` was not called.
            ProducerFencedError: a newer producer with the same transactional.id has taken over.
            KafkaError: the producer is in an error state, of that error's class.
        """
        session = self._session("begin_transaction")
        begun = self._parts.clock.now()
        try:
            session.begin()
        finally:
            self._note_time(self._parts.metrics.txn_begin_ns, begun)

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | Iterable[Any],
        group: ConsumerGroupMetadata | str | object,
        timeout: Seconds | None = None,
    ) -> None:
        """Commits a consumer group's offsets if, and only if, the transaction is committed.

        Args:
            offsets: by partition the next offset to be read, as an int, an OffsetAndMetadata, or what kafka-python and
                aiokafka have for it; or objects with ``topic``, ``partition`` and ``offset``, such as confluent-kafka's
                ``consumer.position(consumer.assignment())``.  Objects without a position are left out.  If there are
                none, nothing is done.
            group: its id, or better the consumer's metadata, because then a member that was expelled cannot commit
                (KIP-447): a ConsumerGroupMetadata, ``consumer.consumer_group_metadata()`` of confluent-kafka,
                ``consumer.group_metadata()`` of kafka-python 3.0 and later, or an AIOKafkaConsumer itself.
            timeout: seconds; None for ``max.block.ms``.

        Raises:
            CommitFailedError: the group has moved on (abort, and go on from the group's new state).
            KafkaTimeoutError: not confirmed in time; call it again with the same arguments.
            IllegalStateError: there is no transaction.
            IllegalArgumentError: an offset or group that cannot be, or group metadata of an unknown version.
            KafkaError: refused, or the producer is in an error state.
        """
        call = self._send_offsets_call(offsets, group, timeout)
        if call is not None:
            self._await(call)

    def _send_offsets_call(self, offsets: Any, group: Any, timeout: Seconds | None) -> Call | None:
        session = self._session("send_offsets_to_transaction")
        # There since a producer with transactions was made.
        from forebay._transactions.offsets import checked_group, checked_offsets

        limit = self._limit(timeout)
        checked, member = checked_offsets(offsets), checked_group(group)
        if not checked:
            return None
        sensor = self._parts.metrics.txn_send_offsets_ns
        return self._call("send_offsets_to_transaction", lambda: session.send_offsets(checked, member), limit, sensor)

    def commit_transaction(self, timeout: Seconds | None = None) -> None:
        """Sends what was accepted, waits for every outcome, and commits.

        Args:
            timeout: seconds; None for ``max.block.ms``.

        Raises:
            KafkaTimeoutError: not confirmed in time; the transaction may still be committed: call it again.
            IllegalStateError: there is no transaction.
            ProducerFencedError: a newer producer with the same transactional.id has taken over.
            KafkaError: a record failed, or the coordinator refused: nothing is committed, the transaction has to be
                aborted (unless the error is fatal).
        """
        self._await(self._commit_call(timeout))

    def _commit_call(self, timeout: Seconds | None) -> Call:
        session = self._session("commit_transaction")
        limit = self._limit(timeout)
        return self._call("commit_transaction", session.commit, limit, self._parts.metrics.txn_commit_ns)

    def abort_transaction(self, timeout: Seconds | None = None) -> None:
        """Ends the transaction without effect; what was not sent yet fails with TransactionAbortedError.

        Args:
            timeout: seconds; None for ``max.block.ms``.

        Raises:
            KafkaTimeoutError: not confirmed in time; call it again.
            IllegalStateError: there is no transaction.
            KafkaError: the producer cannot go on.
        """
        self._await(self._abort_call(timeout))

    def _abort_call(self, timeout: Seconds | None) -> Call:
        session = self._session("abort_transaction")
        limit = self._limit(timeout)
        return self._call("abort_transaction", session.abort, limit, self._parts.metrics.txn_abort_ns)

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """``with producer.transaction():`` begins, and commits at the end of the block.

        If the block raises, whatever it is, the transaction is aborted and the same exception goes on; if the abort
        or commit fails too, that is noted on it.  A commit that fails is followed by an abort.

        Raises:
            IllegalStateError: a transaction is open.
            KafkaError: as ``commit_transaction``.
        """
        self.begin_transaction()
        try:
            yield self
        except BaseException as error:
            self._abort_after(error)
            raise
        try:
            self.commit_transaction()
        except KafkaTimeoutError:
            raise  # undecided: the same call again is what decides
        except KafkaError as error:
            self._abort_after(error)
            raise

    def _abort_after(self, error: BaseException) -> None:
        try:
            call = self._abort_call_after_error()
            if call is not None:
                self._await(call)
        except (ProducerClosedError, ForkedProducerError):
            pass  # close aborts it; in a forked child it belongs to the parent
        except KafkaError as failure:
            error.add_note(f"The transaction could not be aborted: {failure!r}")

    def _abort_call_after_error(self) -> Call | None:
        session = self._session("abort_transaction")
        if session.dialog.state not in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
            return None  # ended in the block, or beyond repair
        sensor = self._parts.metrics.txn_abort_ns
        return self._call("abort_transaction", lambda: session.abort(without_offsets=True), self._limit(None), sensor)

    # A transaction that another process ends

    def detach_transaction(self) -> TransactionIdentity:
        """Leaves the open transaction to a process that ends it with ``AdminClient.end_transaction``; after ``flush``.

        This producer may initialize another one then.  Its ``close`` does not touch the transaction that it left.

        Raises:
            IllegalStateError: no transaction, an empty one, or records without an outcome.
            KafkaError: a record failed: the transaction can only be aborted.
        """
        return self._session("detach_transaction").detach(self._parts.accumulator.unfinished_records)

    def set_transactional_id(self, transactional_id: str) -> None:
        """Gives this producer another transactional.id, on the same connections; ``init_transactions`` must follow.

        Raises:
            IllegalStateError: a transaction is open, or there was no transactional.id to begin with.
            IllegalArgumentError: not a string, empty, or one that cannot be sent.
        """
        if not isinstance(transactional_id, str) or not transactional_id:
            raise IllegalArgumentError(f"transactional_id must be a non-empty str, got {transactional_id!r}")
        check_text("transactional_id", transactional_id)
        self._session("set_transactional_id").rename(transactional_id)

    # Waiting

    def _session(self, call: str) -> TransactionCalls:
        self._check_open()
        session = self._parts.session
        if session is None:
            raise IllegalStateError(f"Cannot call {call}(): the producer has no transactional.id")
        if self._on_sender_thread():
            raise IllegalStateError(f"{call}() cannot be called from a delivery callback: it would wait for itself")
        check_wait(f"{call}()")
        return session

    def _limit(self, timeout: Seconds | None) -> float:
        """The timeout in ms, checked; called before anything is begun."""
        if timeout is None:
            return float(self._parts.config["max.block.ms"])
        return seconds(timeout) * 1000

    def _call(self, name: str, begin: Callable[[], TransactionalResult], limit: float, sensor: SharedSensor) -> Call:
        begun = self._parts.clock.now()
        try:
            result = begin()
        except BaseException:
            self._note_time(sensor, begun)
            raise
        self._parts.client.wakeup()
        return Call(name, result, limit, sensor, begun)

    def _await(self, call: Call) -> None:
        try:
            self._check_outcome(call, call.result.wait(call.limit))
        finally:
            self._note_time(call.sensor, call.begun)

    def _check_outcome(self, call: Call, is_known: bool) -> None:
        if not is_known:
            late = KafkaTimeoutError(
                f"Timeout expired after {call.limit:g}ms while awaiting {call.name}(); call it again to wait for its "
                "outcome",
                phase=call.name,
            )
            raise caused(late, self._parts.metadata.uncaught_since(call.begun))
        if call.result.error is not None:
            raise own_copy(call.result.error)

    def _note_time(self, sensor: SharedSensor, begun: float) -> None:
        sensor.record((self._parts.clock.now() - begun) * 1e6)

    # Of the producer's other bases

    def _check_open(self) -> None:
        raise TypeError("TransactionalCalls is part of KafkaProducer")

    def _on_sender_thread(self) -> bool:
        """Whether a delivery callback makes the call."""
        raise TypeError("TransactionalCalls is part of KafkaProducer")


def _check_identity(identity: TransactionIdentity, transactional_id: str) -> None:
    if identity.transactional_id != transactional_id:
        raise IllegalArgumentError(
            f"The identity belongs to the transactional.id {identity.transactional_id!r}, this producer's is "
            f"{transactional_id!r}; set_transactional_id() changes it"
        )
    if identity.producer_id < 0 or not 0 <= identity.producer_epoch <= 32767:
        raise IllegalArgumentError(
            f"A producer id is at least 0 and an epoch 0 to 32767, got {identity.producer_id} and "
            f"{identity.producer_epoch}"
        )
    if identity.transaction_version not in (0, 1, 2):
        raise IllegalArgumentError(f"A transaction version is 0, 1 or 2, got {identity.transaction_version!r}")
