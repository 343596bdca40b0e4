"""Rows of Arrow columns into record batches, without a Python object a row.

``Columns`` opens the columns of one Arrow batch by the names Spark's Kafka sink uses; ``append_columns`` carries
their rows into the accumulator by the same steps as ``send()``: same partitioner, same bounded memory, same
checks.  ``Deliveries`` follows what became of them batch by batch, with the rows each batch took.
"""

from __future__ import annotations

from typing import Any

import cython

from forebay.errors import IllegalArgumentError, KafkaError
from forebay.model import TopicPartition

if cython.compiled:
    from cython.cimports.forebay._accumulator.topic import TopicState
    from cython.cimports.forebay._arrow import ArrowBatch, BytesColumn, HeadersColumn, IntColumn, TimestampColumn
    from cython.cimports.forebay._codec._prim import RecordView, bytearray_pointer, murmur2, no_bytes
    from cython.cimports.forebay._future import BatchResult, RecordFuture, new_future
    from cython.cimports.forebay._records.batch_v2 import record_body_size, record_size
    from cython.cimports.forebay._send import SendPath
else:
    from forebay._accumulator.topic import TopicState
    from forebay._arrow import ArrowBatch, BytesColumn, HeadersColumn, IntColumn, TimestampColumn
    from forebay._codec._prim import RecordView, bytearray_pointer, murmur2, no_bytes
    from forebay._future import BatchResult, RecordFuture, new_future
    from forebay._records.batch_v2 import record_body_size, record_size
    from forebay._send import SendPath

APPENDED = cython.declare(cython.int, 1)
WORTH_WAKING = cython.declare(cython.int, 6)
STICKY = cython.declare(cython.int, -1)
MOST_PARTITION = cython.declare(cython.longlong, 0x7FFFFFFF)
UNBOUNDED = cython.declare(cython.double, -1.0)
"""A deadline that has not begun: max.block.ms counts from the first wait of each row, as for each send()."""

ROWS_BETWEEN_BREAKS = cython.declare(cython.Py_ssize_t, 256)
"""How many rows go in before the GIL is offered to the sender's thread; about 30 microseconds' worth."""

NO_HEADERS: bytearray = bytearray(b"\x00")


@cython.final
@cython.cclass
class Columns:
    """The columns of one Arrow batch that a record is made of; all but the value may be missing.

    Args:
        source: a record batch, or anything else with ``__arrow_c_array__``.
        topic: where every row goes; None reads the column ``topic``.

    Raises:
        IllegalArgumentError: no ``value`` column, no topic either way, or a column of a type that does not fit.
    """

    length: cython.Py_ssize_t
    topic: str | None
    topics: BytesColumn | None
    keys: BytesColumn | None
    values: BytesColumn
    headers: HeadersColumn | None
    partitions: IntColumn | None
    timestamps: TimestampColumn | None

    def __init__(self, source: Any, topic: str | None = None) -> None:
        batch: ArrowBatch = source if isinstance(source, ArrowBatch) else ArrowBatch(source)
        names = batch.names
        self.length = batch.length
        self.topic = topic
        self.values = batch.bytes_column("value")
        self.keys = batch.bytes_column("key") if "key" in names else None
        self.headers = batch.headers_column("headers") if "headers" in names else None
        self.partitions = batch.int_column("partition") if "partition" in names else None
        self.timestamps = batch.timestamp_column("timestamp") if "timestamp" in names else None
        self.topics = batch.bytes_column("topic") if topic is None and "topic" in names else None
        if topic is None and self.topics is None:
            raise IllegalArgumentError(f"neither a topic nor a column 'topic' is given; columns: {', '.join(names)}")

    def __len__(self) -> int:
        return self.length

    def row(self, at: cython.Py_ssize_t) -> tuple[Any, ...]:
        """(topic, partition, timestamp in ms, key, value, encoded headers) of one row, for tools and tests."""
        topic: Any = self.topic if self.topics is None else self.topics.get(at)
        partition = None if self.partitions is None or self.partitions.is_null(at) else self.partitions.value(at)
        timestamp = None if self.timestamps is None or self.timestamps.is_null(at) else self.timestamps.millis(at)
        key = None if self.keys is None else self.keys.get(at)
        headers = bytes(NO_HEADERS) if self.headers is None else self.headers.section(at)
        return (
            topic.decode() if type(topic) is bytes else topic,
            partition,
            timestamp,
            key,
            self.values.get(at),
            headers,
        )


@cython.final
@cython.cclass
class Share:
    """The rows of one caller that went into one batch.

    Which of its records they are counts only if it is split: kept as runs of indices, one unless several callers take
    turns.  ``runs`` (first index, rows, first index ...) has those before the latest.
    """

    result: BatchResult
    rows: cython.Py_ssize_t
    first_row: cython.Py_ssize_t
    base_timestamp: cython.longlong
    run_first: cython.int
    run_rows: cython.int
    runs: list[int]

    def __init__(self, result: BatchResult, row: cython.Py_ssize_t, timestamp: cython.longlong) -> None:
        self.result = result
        self.rows = 0
        self.first_row = row
        self.base_timestamp = timestamp
        self.run_first = -1
        self.run_rows = 0
        self.runs = []

    @cython.cfunc
    def add(self, index: cython.int) -> cython.void:
        self.rows += 1
        if index != self.run_first + self.run_rows:
            if self.run_rows > 0:
                self.runs.append(self.run_first)
                self.runs.append(self.run_rows)
            self.run_first = index
            self.run_rows = 0
        self.run_rows += 1


@cython.final
@cython.cclass
class Deliveries:
    """What became of one caller's rows; used by that caller's thread alone.

    Holds one ``Share`` for each batch that has no outcome yet; ``collect`` folds the others into the counts, so
    that memory follows what is in flight and not what was sent.  ``first_failed_row`` is exact unless a batch was split
    whose rows did not follow each other; then the row that failed is not before it.
    """

    rows = cython.declare(cython.Py_ssize_t, visibility="readonly")
    acknowledged = cython.declare(cython.Py_ssize_t, visibility="readonly")
    failed = cython.declare(cython.Py_ssize_t, visibility="readonly")
    batches = cython.declare(cython.Py_ssize_t, visibility="readonly")
    raw_bytes = cython.declare(cython.longlong, visibility="readonly")
    first_error = cython.declare(object, visibility="readonly")
    first_failed_row = cython.declare(cython.Py_ssize_t, visibility="readonly")
    partitions = cython.declare(dict, visibility="readonly")
    shares: list[Share]
    by_result: dict[BatchResult, Share]
    latest: list[Share | None]

    def __init__(self) -> None:
        self.rows = 0
        self.acknowledged = 0
        self.failed = 0
        self.batches = 0
        self.raw_bytes = 0
        self.first_error = None
        self.first_failed_row = -1
        self.partitions = {}
        self.shares = []
        self.by_result = {}
        self.latest = []

    def track(self, result: BatchResult, row: cython.Py_ssize_t, size: cython.Py_ssize_t) -> None:
        """Notes that ``row``, a record of ``size`` bytes, went into the batch of ``result``."""
        share: Share = self.share_of(result, row, 0)
        share.add(cython.cast(cython.int, share.rows))
        self.rows += 1
        self.raw_bytes += size

    @cython.cfunc
    def share_of(self, result: BatchResult, row: cython.Py_ssize_t, timestamp: cython.longlong) -> Share:
        # Rows of a partition mostly follow each other into one batch: a look at the partition's latest share, and
        # the dictionary only for several topics that take turns.
        partition: cython.Py_ssize_t = result.partition
        while len(self.latest) <= partition:
            self.latest.append(None)
        share: Share | None = self.latest[partition]
        if share is not None and share.result is result:
            return share
        share = self.by_result.get(result)
        if share is None:
            share = Share(result, row, timestamp)
            self.by_result[result] = share
            self.shares.append(share)
        self.latest[partition] = share
        return share

    def collect(self) -> int:
        """Counts what has an outcome; returns how many batches have none."""
        share: Share
        still: list[Share] = []
        for share in self.shares:
            if share.result.done:
                self._count(share)
            else:
                still.append(share)
        self.shares = still
        self.by_result = {share.result: share for share in still}
        self.latest = []
        return len(still)

    def _count(self, share: Share) -> None:
        self.batches += 1
        if share.result.parts is None:
            self._count_rows(share.result, share.rows, share.first_row)
            return
        runs = [*share.runs, share.run_first, share.run_rows]
        part: BatchResult
        before: cython.Py_ssize_t = 0
        for at in range(0, len(runs), 2):
            index: cython.int = runs[at]
            end: cython.int = index + runs[at + 1]
            while index < end:
                part = share.result.leaf(index)
                rows: cython.int = min(end, part.first + part.record_count) - index
                self._count_rows(part, rows, share.first_row + before)
                before += rows
                index += rows

    @cython.cfunc
    def _count_rows(self, result: BatchResult, rows: cython.Py_ssize_t, first_row: cython.Py_ssize_t) -> cython.void:
        error: KafkaError | None = result.error
        if error is None:
            where = TopicPartition(result.topic, result.partition)
            self.acknowledged += rows
            self.partitions[where] = self.partitions.get(where, 0) + rows
            return
        self.failed += rows
        if self.first_error is None or first_row < self.first_failed_row:
            self.first_error = error
            self.first_failed_row = first_row


@cython.final
@cython.cclass
class _Appender:
    """One call of ``append_columns``: the columns, where they go, and what is remembered between rows."""

    path: SendPath
    columns: Columns
    deliveries: Deliveries
    probe: RecordFuture
    state: TopicState | None
    topic_name: bytes | None
    states: dict[bytes, TopicState]
    wall: cython.longlong

    def __init__(self, path: SendPath, columns: Columns, deliveries: Deliveries) -> None:
        self.path = path
        self.columns = columns
        self.deliveries = deliveries
        # The append writes batch and index into it; one for all rows, since nobody waits on it.
        self.probe = new_future()
        self.state = None
        self.topic_name = None
        self.states = {}
        self.wall = path.wall()

    @cython.cfunc
    def append(self, at: cython.Py_ssize_t, row: cython.Py_ssize_t) -> cython.int:
        columns: Columns = self.columns
        number: cython.int = self.partition_given(at)
        state: TopicState = self.topic_of(at, number)
        key_size: cython.Py_ssize_t = -1
        key: cython.p_const_uchar = no_bytes()
        if columns.keys is not None:
            key_size = columns.keys.seek(at)
            key = columns.keys.found
        value_size: cython.Py_ssize_t = columns.values.seek(at)
        headers: cython.p_const_uchar = bytearray_pointer(NO_HEADERS)
        headers_size: cython.Py_ssize_t = 1
        if columns.headers is not None:
            headers_size = columns.headers.encode(at)
            headers = columns.headers.encoded
        timestamp: cython.longlong = self.timestamp_of(at)
        record: RecordView = RecordView(
            timestamp=timestamp,
            key=key,
            key_size=key_size,
            value=columns.values.found,
            value_size=value_size,
            headers=headers,
            headers_size=headers_size,
        )
        self.path.check_size(record)
        if number < 0:
            if self.path.partitioner is not None:
                key_bytes: bytes | None = None if columns.keys is None else columns.keys.get(at)
                value_bytes: bytes | None = columns.values.get(at)
                number = self.path.choose_partition(state, key_bytes, key_bytes, value_bytes, value_bytes)
            elif key_size >= 0 and not self.path.ignore_keys:
                number = (murmur2(key, key_size) & MOST_PARTITION) % state.partition_count
        status: cython.int = self.path.accumulator.try_append(state, number, record, self.probe, None)
        if not status & APPENDED:
            status = self.path.append_waiting(state, number, record, self.probe, None, True, UNBOUNDED)
        self.note(row, timestamp, key_size, value_size, headers_size)
        return status

    @cython.cfunc
    def note(
        self,
        row: cython.Py_ssize_t,
        timestamp: cython.longlong,
        key_size: cython.Py_ssize_t,
        value_size: cython.Py_ssize_t,
        headers_size: cython.Py_ssize_t,
    ) -> cython.void:
        share: Share = self.deliveries.share_of(self.probe.batch, row, timestamp)
        share.add(self.probe.index)
        self.deliveries.rows += 1
        self.deliveries.raw_bytes += record_size(
            record_body_size(timestamp - share.base_timestamp, self.probe.index, key_size, value_size, headers_size)
        )

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def partition_given(self, at: cython.Py_ssize_t) -> cython.int:
        column: IntColumn | None = self.columns.partitions
        if column is None or column.is_null(at):
            return STICKY
        number: cython.longlong = column.value(at)
        if number < 0 or number > MOST_PARTITION:
            raise IllegalArgumentError(
                f"Invalid partition: {number}. Partition number should always be non-negative or null."
            )
        return cython.cast(cython.int, number)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def timestamp_of(self, at: cython.Py_ssize_t) -> cython.longlong:
        column: TimestampColumn | None = self.columns.timestamps
        if column is None or column.is_null(at):
            return self.wall
        timestamp: cython.longlong = column.millis(at)
        if timestamp < 0:
            raise IllegalArgumentError(
                f"Invalid timestamp: {timestamp} ms. Timestamp should always be non-negative or null."
            )
        return timestamp

    @cython.cfunc
    def topic_of(self, at: cython.Py_ssize_t, number: cython.int) -> TopicState:
        """The topic's state, once metadata knows it and the partition; waits up to max.block.ms."""
        column: BytesColumn | None = self.columns.topics
        state: TopicState | None = self.state
        if column is not None:
            name: bytes | None = column.get(at)
            if name is None:
                raise IllegalArgumentError(
                    "null topic present in the data. Use the option 'topic', or a topic column without nulls"
                )
            if name != self.topic_name:
                self.topic_name = name
                state = self.states.get(name)
        if state is None or state.partition_count == 0 or state.missing or number >= state.partition_count:
            topic: str = self.columns.topic or ""
            if self.topic_name is not None:
                topic = self.topic_name.decode("utf-8", "replace")
            deadline: cython.double = self.path.now() + self.path.max_block_ms
            state = self.path.topic_for_sending(topic, number, True, deadline)
            if self.topic_name is not None:
                self.states[self.topic_name] = state
        self.state = state
        return state


def append_columns(path: SendPath, columns: Columns, deliveries: Deliveries, first_row: cython.Py_ssize_t = 0) -> None:
    """Puts every row into a batch; waits for memory and metadata as ``send()`` does, at most max.block.ms a row.

    Args:
        path: a KafkaProducer; its serializers and interceptors are not asked.
        deliveries: gets every row that was appended, those before an error too.
        first_row: the number of the first row in messages and in ``deliveries``.

    Raises:
        KafkaError: a row cannot be taken: too large, no memory in time, no such topic or partition, a header
            without a key ...; the rows after it were not looked at.  Its context has ``row``.
    """
    if path.state != 0:
        raise path._refusal()
    appender: _Appender = _Appender(path, columns, deliveries)
    at: cython.Py_ssize_t = 0
    status: cython.int = 0
    try:
        for at in range(columns.length):
            status |= appender.append(at, first_row + at)
            if status & WORTH_WAKING:
                path.wake()
                status = 0
            if at % ROWS_BETWEEN_BREAKS == 0:
                with cython.nogil:
                    pass
    except KafkaError as error:
        error.with_context(row=first_row + at)
        raise
