"""MockProducer: a KafkaProducer without a network, for tests of code that is given one; as Java's of that name."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Never, Self, Unpack

from forebay._assembly.user_parts import make_user_parts
from forebay._delivery.future import RecordFuture, failed_future, lone_future
from forebay._records.batch_v2 import encode_headers
from forebay._records.layout import BATCH_OVERHEAD, MAX_RECORD_OVERHEAD
from forebay._records.reader import read_headers
from forebay._runtime.clock import Clock, SystemClock
from forebay._runtime.hints import old_spelling, shown_as
from forebay._runtime.times import limit
from forebay._transactions.offsets import checked_group, checked_offsets
from forebay.config import ProducerConfig
from forebay.errors import (
    IllegalArgumentError,
    IllegalStateError,
    InvalidTopicError,
    KafkaError,
    ProducerClosedError,
    ProducerFencedError,
    PurgedError,
)
from forebay.model import DeliveryCallback, PartitionInfo, ProducerRecord, TopicPartition
from forebay.model._arguments import as_record, listed_headers, not_callable
from forebay.producer._acknowledged import Acknowledged
from forebay.producer._columns import BatchDelivery
from forebay.producer._refusals import record_too_large, send_shape
from forebay.testing.mock_cluster import NODE, MockCluster, Offsets, Sent
from forebay.testing.records import ReadRecord
from forebay.testing.table_rows import HEADERS, KEY, PARTITION, TIMESTAMP, rows_of

if TYPE_CHECKING:
    from forebay._runtime.times import Seconds, Timestamp
    from forebay.config._typed import ProducerOptions

logger: logging.Logger = logging.getLogger("forebay.callbacks")

FAILING = [
    *("send", "flush", "purge", "close", "partitions_for", "init_transactions", "begin_transaction"),
    *("send_offsets_to_transaction", "commit_transaction", "abort_transaction"),
]
"""The methods that ``fail`` takes."""


class MockProducer:
    """Takes what a KafkaProducer takes, and keeps it; nothing is sent.

    ::

        producer = MockProducer(partitions={"orders": 3})
        place_order(producer)
        assert [record.value for record in producer.history()] == [b"order 41"]

    Serializers, partitioners and interceptors work as in a KafkaProducer, and so do its checks of arguments.  Futures
    are those of ``forebay``, so they can be waited for and awaited.  A callback runs on the thread that completes its
    record.  For one thread at a time.

    Args:
        config: a producer's options by Kafka's names; no server is needed.
        auto_complete: each record is acknowledged at once; otherwise by ``complete_next``, ``error_next`` or ``flush``.
        partitions: how many a topic has: the same for all, or by name; then other topics are unknown.
        clock: the timestamps of records that have none; None for the machine's.
        options: the same as ``config``, as keywords.

    Raises:
        ConfigError: an unknown option, or a value that cannot be.
        IllegalArgumentError: a topic would have no partition.
    """

    transaction_initialized: bool = False
    in_transaction: bool = False
    closed: bool = False
    fenced: bool = False
    commit_count: int = 0
    abort_count: int = 0

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        /,
        *,
        auto_complete: bool = True,
        partitions: int | Mapping[str, int] = 1,
        clock: Clock | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        given = dict(config or {})
        if "bootstrap.servers" not in given and "bootstrap_servers" not in options:
            options["bootstrap_servers"] = f"{NODE.host}:{NODE.port}"
        self.config: ProducerConfig = ProducerConfig(given, **options)
        self.client_id: str = self.config["client.id"] or "mock-producer"
        self.auto_complete: bool = auto_complete
        self._largest = min(self.config["max.request.size"], self.config["buffer.memory"])
        self._clock = SystemClock() if clock is None else clock
        self._users = make_user_parts(
            self.config, {**self.config, "client.id": self.client_id}, lambda: 0.5, lambda part: part
        )
        self._chain = self._users.interceptors or None
        ignore_keys = self.config["partitioner.ignore.keys"]
        self._cluster = MockCluster(partitions, self._users.partitioner, ignore_keys=ignore_keys)
        # Futures of records without an outcome, and their offsets.
        self._open: deque[tuple[Any, int]] = deque()
        self.transactional_id: str | None = self.config["transactional.id"]
        self._failing: dict[str, BaseException] = {}

    # What a test looks at and decides

    def history(self) -> list[ProducerRecord]:
        """What was sent, as it was given, in order, also what failed; of a transaction once it is committed."""
        return [sent.given for sent in self._cluster.sent]

    def uncommitted_history(self) -> list[ProducerRecord]:
        """What was sent in the open transaction."""
        return [sent.given for sent in self._cluster.uncommitted]

    def records(self, topic: str | None = None) -> list[ReadRecord]:
        """The same as ``history``, serialized, with partition and offset.

        Args:
            topic: None for all.
        """
        return [sent.kept for sent in self._cluster.sent if topic in (None, sent.kept.topic)]

    def committed_offsets(self) -> list[Offsets]:
        """What each committed transaction committed, by consumer group; those without offsets are left out."""
        return list(self._cluster.offsets)

    def complete_next(self) -> bool:
        """Acknowledges the oldest record without an outcome; False if there is none."""
        return self._end_next(None)

    def error_next(self, error: KafkaError) -> bool:
        """Fails the oldest record without an outcome; False if there is none.

        Raises:
            TypeError: it is not the error that a producer's record can have.
        """
        if not isinstance(error, KafkaError):
            raise TypeError(f"a record fails with a KafkaError, such as RecordTooLargeError(), not with {error!r}")
        return self._end_next(error)

    def fail(self, method: str, error: BaseException | None) -> None:
        """Makes a method raise ``error`` at each call from now on; None ends that.

        Raises:
            IllegalArgumentError: no method that can be made to.
        """
        if method not in FAILING:
            raise IllegalArgumentError(f"{method!r} cannot be made to fail; {', '.join(FAILING)} can")
        self._failing.pop(method, None)
        if error is not None:
            self._failing[method] = error

    def fence(self) -> None:
        """As if a newer producer with the same transactional.id had taken over.

        Raises:
            IllegalStateError: there is no transactional.id, or ``init_transactions`` was not called.
        """
        self._check_initialized("fence")
        self.fenced = True

    def clear(self) -> None:
        """Forgets what was sent and committed; records without an outcome get none any more."""
        self._open.clear()
        self._cluster.clear()

    # What a KafkaProducer has

    def send(
        self,
        topic: str | ProducerRecord,
        value: Any = None,
        key: Any = None,
        *old: Never,
        headers: Any = None,
        partition: int | None = None,
        timestamp: Timestamp | None = None,
        timestamp_ms: None = None,
        on_delivery: DeliveryCallback | None = None,
    ) -> RecordFuture:
        """As ``KafkaProducer.send``, which it checks arguments like.

        Raises:
            UnknownTopicOrPartitionError: the mock has no such topic or partition.
        """
        self._check_usable("send")
        if old or timestamp_ms is not None:
            raise old_spelling("send", timestamp_ms)
        if on_delivery is not None and not callable(on_delivery):
            raise not_callable(on_delivery)
        return self._intercepted(as_record(topic, value, key, headers, partition, timestamp), on_delivery)

    shown_as(send_shape, send)
    send_nowait = send

    def send_batch(
        self,
        topic: str | None,
        table: Any,
        *,
        value: Any = "value",
        key: Any = KEY,
        headers: Any = HEADERS,
        partition: Any = PARTITION,
        timestamp: Any = TIMESTAMP,
        topic_column: Any = None,
    ) -> BatchDelivery:
        """As ``KafkaProducer.send_batch``, row by row: of a list of values, a dict of lists, or an Arrow table.

        Raises:
            KafkaError: a row cannot be taken; ``context["row"]`` says which, and ``delivery`` has those before it.
        """
        self._check_usable("send")
        delivery: Any = BatchDelivery()
        rows = list(rows_of(table, value, key, headers, partition, timestamp, topic_column))
        row = 0
        try:
            for row, cells in enumerate(rows):
                own_topic = cells.pop("topic", None) or topic
                if own_topic is None:
                    raise IllegalArgumentError(f"row {row}: its topic is null, and send_batch was given none")
                record = ProducerRecord(own_topic, **cells)
                future: Any = self._intercepted(record, None, by_column=True)
                delivery._track(future._batch, row, len(record.key or b"") + len(record.value or b""))
            delivery._stop_at(len(rows), ())
        except KafkaError as error:
            delivery._stop_at(row + 1, [row])
            error.with_context(row=row).delivery = delivery
            raise
        finally:
            delivery._end_call()
        return delivery  # type: ignore[no-any-return]  # its own methods are not part of the public type

    def partitions_for(self, topic: str, *, timeout: Seconds | None = None) -> tuple[PartitionInfo, ...]:
        """Those the mock was made with, without a wait; UnknownTopicOrPartitionError if it has no such topic."""
        self._check_open()
        self._raise("partitions_for", timeout)
        return self._cluster.partitions(topic)

    def warm_up(self, topics: Iterable[str], *, timeout: Seconds | None = None) -> None:
        """Looks the topics up, as ``partitions_for``."""
        self._raise("warm_up", timeout)
        for topic in topics:
            self.partitions_for(topic)

    def metrics(self) -> dict[str, Any]:
        """Empty: nothing is measured."""
        return {}

    def flush(self, timeout: Seconds | None = None) -> None:
        """Acknowledges every record without an outcome."""
        self._check_open()
        self._raise("flush", timeout)
        while self.complete_next():
            pass

    def purge(self, *, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Fails every record without an outcome with a PurgedError; with ``in_queue`` alone, as none is in flight."""
        self._raise("purge")
        while in_queue and self._end_next(PurgedError("The record was purged before it was sent", phase="queued")):
            pass

    def close(self, timeout: Seconds | None = None) -> None:
        """Acknowledges what is open and ends the producer; a transaction that is open is aborted."""
        if self.closed:
            return
        self._raise("close", timeout)
        while self.complete_next():
            pass
        if self.in_transaction:
            self._end_transaction(False)
        self.closed = True
        self._users.close_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # Transactions

    def init_transactions(self, timeout: Seconds | None = None, *, identity: Any = None) -> None:
        """Must be called once before the first transaction.

        Raises:
            IllegalStateError: it was called before, or there is no transactional.id.
        """
        limit(timeout)
        self._check_usable("init_transactions")
        if self.transactional_id is None:
            raise IllegalStateError("Cannot call init_transactions(): the producer has no transactional.id")
        if self.transaction_initialized:
            raise IllegalStateError("init_transactions() was called before")
        self._raise("init_transactions")
        self.transaction_initialized = True

    def begin_transaction(self) -> None:
        """Opens a transaction.

        Raises:
            IllegalStateError: one is open, or ``init_transactions`` was not called.
        """
        self._check_usable("begin_transaction")
        self._check_initialized("begin_transaction")
        self._raise("begin_transaction")
        if self.in_transaction:
            raise IllegalStateError("A transaction is open already")
        self.in_transaction = True

    def send_offsets_to_transaction(self, offsets: Any, group: Any, timeout: Seconds | None = None) -> None:
        """As ``KafkaProducer.send_offsets_to_transaction``; ``committed_offsets`` has them once it is committed."""
        self._check_in_transaction("send_offsets_to_transaction")
        self._raise("send_offsets_to_transaction", timeout)
        checked, member = checked_offsets(offsets), checked_group(group)
        if checked:
            self._cluster.uncommitted_offsets.setdefault(member.group_id, {}).update(checked)

    def commit_transaction(self, timeout: Seconds | None = None) -> None:
        """Acknowledges what is open, and makes the transaction part of the history."""
        self._check_in_transaction("commit_transaction")
        self._raise("commit_transaction", timeout)
        self.flush()
        self._end_transaction(True)
        self.commit_count += 1

    def abort_transaction(self, timeout: Seconds | None = None) -> None:
        """Forgets what was sent in the transaction."""
        self._check_in_transaction("abort_transaction")
        self._raise("abort_transaction", timeout)
        self.flush()
        self._end_transaction(False)
        self.abort_count += 1

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """``with producer.transaction():`` begins, and commits at the end of the block; aborts if the block raises."""
        self.begin_transaction()
        try:
            yield self
        except BaseException:
            if self.in_transaction and not self.fenced:
                self.abort_transaction()
            raise
        self.commit_transaction()

    # Inside

    def _intercepted(self, record: ProducerRecord, callback: Any, *, by_column: bool = False) -> RecordFuture:
        if self._chain is None:
            return self._take(record, callback, by_column)
        record = self._chain.on_send(record)
        try:
            return self._take(record, Acknowledged(self._chain, callback, record.headers), by_column)
        except Exception as error:
            self._chain.on_send_error(record, None, error)
            raise

    def _take(self, record: ProducerRecord, callback: Any, by_column: bool) -> RecordFuture:
        topic, timestamp, key, value = record.topic, record.timestamp, record.key, record.value
        # Before anything else is looked at.
        try:
            self._cluster.count(topic)
        except InvalidTopicError as forbidden:
            if by_column:
                raise
            return failed_future(
                topic, -1 if record.partition is None else record.partition, forbidden, callback, _report
            )
        pairs = listed_headers(record.headers)
        if not by_column:  # columns pass no serializer
            key = self._users.key_serializer.serialize(topic, pairs, key)
            value = self._users.value_serializer.serialize(topic, pairs, value)
        if isinstance(callback, Acknowledged):
            callback.note_headers(pairs)
        section = encode_headers(pairs)
        partition = self._cluster.partition_of(record, key, value)
        size = BATCH_OVERHEAD + MAX_RECORD_OVERHEAD + len(section) - 1 + len(key or b"") + len(value or b"")
        if size > self._largest:
            refused = record_too_large(size, self._largest)
            if by_column:
                raise refused
            return failed_future(topic, partition, refused, callback, _report)
        offset = self._cluster.next_offset(TopicPartition(topic, partition))
        if timestamp is None:
            timestamp = self._clock.wall()
        sizes = (-1 if part is None else len(part) for part in (key, value))
        future = lone_future(topic, partition, callback, timestamp, *sizes)
        sent = Sent(record, ReadRecord(topic, partition, offset, timestamp, key, value, read_headers(section)))
        (self._cluster.uncommitted if self.in_transaction else self._cluster.sent).append(sent)
        self._open.append((future, offset))
        if self.auto_complete:
            self.complete_next()
        return future

    def _end_next(self, error: KafkaError | None) -> bool:
        if not self._open:
            return False
        future, offset = self._open.popleft()
        future._batch.settle(-1 if error is not None else offset, -1, error, None, 1, _report)
        return True

    def _end_transaction(self, commit: bool) -> None:
        self.in_transaction = False
        self._cluster.end_transaction(commit=commit)

    def _check_open(self) -> None:
        if self.closed:
            raise ProducerClosedError("Cannot perform operation after producer has been closed")

    def _check_usable(self, call: str) -> None:
        self._check_open()
        if self.fenced:
            raise ProducerFencedError(f"{call}(): a newer producer with this transactional.id has taken over")
        if call == "send":
            self._raise("send")
            if self.transactional_id is not None and not self.in_transaction:
                raise IllegalStateError("A producer with a transactional.id sends in transactions alone")

    def _check_initialized(self, call: str) -> None:
        if self.transactional_id is None:
            raise IllegalStateError(f"Cannot call {call}(): the producer has no transactional.id")
        if not self.transaction_initialized:
            raise IllegalStateError(f"{call}(): init_transactions() was not called")

    def _check_in_transaction(self, call: str) -> None:
        self._check_usable(call)
        self._check_initialized(call)
        if not self.in_transaction:
            raise IllegalStateError(f"{call}(): there is no transaction")

    def _raise(self, method: str, timeout: Any = None) -> None:
        limit(timeout)
        if method in self._failing:
            raise self._failing[method]

    def __repr__(self) -> str:
        return f"<MockProducer: {len(self._cluster.sent)} records, {len(self._open)} without an outcome>"


def _report(raised: BaseException, result: Any) -> None:
    logger.error("A callback of a record for %s-%s raised", result.topic, result.partition, exc_info=raised)
