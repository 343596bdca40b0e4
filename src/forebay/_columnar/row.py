"""One row after the other into the accumulator, by the steps of ``send()``: for what has to be looked at alone.

Several topics, a partitioner of the user's, a row that waits for metadata or cannot be taken at all.
"""

from __future__ import annotations

import cython

from forebay.errors import IllegalArgumentError

if cython.compiled:
    from cython.cimports.forebay._accumulator.topic import TopicState
    from cython.cimports.forebay._arrow import BytesColumn, IntColumn, TimestampColumn
    from cython.cimports.forebay._codec._prim import RecordView, bytearray_pointer, murmur2, no_bytes, view_of
    from cython.cimports.forebay._columnar.columns import Columns
    from cython.cimports.forebay._columnar.deliveries import Deliveries, Share
    from cython.cimports.forebay._future import new_future
    from cython.cimports.forebay._records.batch_v2 import record_body_size, record_size
    from cython.cimports.forebay._send import SendPath
else:
    from forebay._accumulator.topic import TopicState
    from forebay._arrow import BytesColumn, IntColumn, TimestampColumn
    from forebay._codec._prim import RecordView, bytearray_pointer, murmur2, no_bytes, view_of
    from forebay._columnar.columns import Columns
    from forebay._columnar.deliveries import Deliveries, Share
    from forebay._future import new_future
    from forebay._records.batch_v2 import record_body_size, record_size
    from forebay._send import SendPath

from forebay._columnar.columns import NO_HEADERS

APPENDED = cython.declare(cython.int, 1)
STICKY = cython.declare(cython.int, -1)
MOST_PARTITION = cython.declare(cython.longlong, 0x7FFFFFFF)
UNBOUNDED = cython.declare(cython.double, -1.0)
"""A deadline that has not begun: max.block.ms counts from the first wait of each row, as for each send()."""


@cython.final
@cython.cclass
class RowAppender:
    """Rows one by one: the columns, where they go, and what is remembered between rows."""

    def __init__(self, path: SendPath, columns: Columns, deliveries: Deliveries) -> None:
        self.path = path
        self.columns = columns
        self.deliveries = deliveries
        # The append writes batch and index into it; one for all rows, since nobody waits on it.
        self.probe = new_future()
        self.state: TopicState | None = None
        self.topic_name: bytes | None = None
        self.states: dict[bytes, TopicState] = {}
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
        self.path.check_size(view_of(record))
        if number < 0:
            if self.path.partitioner is not None:
                key_bytes: bytes | None = None if columns.keys is None else columns.keys.get(at)
                value_bytes: bytes | None = columns.values.get(at)
                number = self.path.choose_partition(state, key_bytes, key_bytes, value_bytes, value_bytes)
            elif key_size >= 0 and not self.path.ignore_keys:
                number = (murmur2(key, key_size) & MOST_PARTITION) % state.partition_count
        status: cython.int = self.path.accumulator.try_append(state, number, view_of(record), self.probe, None)
        if not status & APPENDED:
            status = self.path.append_waiting(state, number, view_of(record), self.probe, None, True, UNBOUNDED)
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
        share.add(self.probe.index, 1)
        self.deliveries.rows += 1
        self.deliveries.raw_bytes += record_size(
            record_body_size(timestamp - share.base_timestamp, self.probe.index, key_size, value_size, headers_size)
        )

    @cython.cfunc
    @cython.exceptval(-2, check=True)
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
    @cython.exceptval(-1, check=True)
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
