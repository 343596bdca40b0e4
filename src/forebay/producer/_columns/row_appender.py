"""RowAppender: rows of columns into the accumulator one by one, by the steps of ``send()``.

For rows that need more than a window can do: a new topic, a user's partitioner or interceptors, a row with an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython
from cython.cimports.forebay._accumulator.states import APPENDED, STICKY
from cython.cimports.forebay._delivery.future import new_future
from cython.cimports.forebay._records.batch_v2 import encode_headers, record_body_size, record_size
from cython.cimports.forebay._runtime.primitives import (
    MAX_INT32,
    RecordPointer,
    RecordView,
    bytes_pointer,
    murmur2,
    no_bytes,
    record_view,
    view_of,
)
from cython.cimports.forebay.model._arguments import checked_partition, checked_timestamp

from forebay._accumulator.topic import TopicState
from forebay._arrow.columns import BytesColumn
from forebay._arrow.numbers import IntColumn, TimestampColumn
from forebay.errors import IllegalArgumentError
from forebay.producer._acknowledged import Acknowledged
from forebay.producer._columns.batch_delivery import BatchDelivery
from forebay.producer._columns.columns import Columns
from forebay.producer._columns.row_share import RowShare
from forebay.producer._columns.topic_table import TopicTable
from forebay.producer._path import SendPath

if TYPE_CHECKING:
    from forebay.model._inputs import ProducerRecord

UNBOUNDED = cython.declare(cython.double, -1.0)
"""No deadline yet: max.block.ms counts from the first wait of each row, as in send()."""
NO_HEADERS = b"\x00"


@cython.final
@cython.cclass
class RowAppender:
    """The columns, their destination, and what is kept between rows.  Belongs to the thread of the call."""

    def __init__(self, path: SendPath, delivery: BatchDelivery) -> None:
        self.path = path
        self.columns = Columns(0, None)
        self.delivery = delivery
        # The append writes batch and index into it.  One future serves all rows, because no thread waits on it.
        self.probe = new_future()
        # Of the latest row.
        self.state: TopicState | None = None
        self.topics = TopicTable()
        self.section = NO_HEADERS
        self.wall = 0

    @cython.cfunc
    def append(self, at: cython.Py_ssize_t, row: cython.Py_ssize_t, callback: Any) -> cython.int:
        columns: Columns = self.columns
        number: cython.int = self.partition_given(at)
        state: TopicState = self.topic_of(at, number)
        key_size: cython.Py_ssize_t = -1
        key: cython.p_const_uchar = no_bytes()
        if columns.keys is not None:
            key_size = columns.keys.seek(at)
            key = columns.keys.found()
        value_size: cython.Py_ssize_t = -1
        value: cython.p_const_uchar = no_bytes()
        if columns.values is not None:
            value_size = columns.values.seek(at)
            value = columns.values.found()
        self.section = NO_HEADERS if columns.headers is None else columns.headers.section(at)
        record: RecordView = RecordView(
            timestamp=self.timestamp_of(at),
            key=key,
            key_size=key_size,
            value=value,
            value_size=value_size,
            headers=bytes_pointer(self.section),
            headers_size=len(self.section),
        )
        self.path.check_size(view_of(record))
        if number < 0:
            if self.path.partitioner is not None:
                key_bytes: bytes | None = None if columns.keys is None else columns.keys.get(at)
                value_bytes: bytes | None = None if columns.values is None else columns.values.get(at)
                number = self.path.choose_partition(state, key_bytes, key_bytes, value_bytes, value_bytes)
            elif key_size >= 0 and not self.path.ignore_keys:
                number = (murmur2(key, key_size) & MAX_INT32) % state.partition_count
        return self.place(state, number, view_of(record), row, callback)

    @cython.cfunc
    def place(
        self, state: TopicState, partition: cython.int, record: RecordPointer, row: cython.Py_ssize_t, callback: Any
    ) -> cython.int:
        """Appends the record to a batch, waits for memory if needed, and notes the row."""
        self.probe._batch = None  # type: ignore[assignment]
        try:
            status: cython.int = self.path.appender.try_append(state, partition, record, self.probe, callback)
            if not status & APPENDED:
                status = self.path.append_waiting(state, partition, record, self.probe, callback, True, UNBOUNDED)
        finally:
            # Ctrl-C may come between the append and this line.
            if self.probe._batch is not None:
                self.note(row, record)
        return status

    @cython.cfunc
    def note(self, row: cython.Py_ssize_t, record: RecordPointer) -> cython.void:
        share: RowShare = self.delivery._share_of(self.probe._batch, record.timestamp)
        share.add(self.probe._index, row, 1)
        self.delivery.rows += 1
        self.delivery.raw_bytes += record_size(
            record_body_size(
                record.timestamp - share.base_timestamp,
                self.probe._index,
                record.key_size,
                record.value_size,
                record.headers_size,
            )
        )

    @cython.cfunc
    @cython.exceptval(-2, check=True)
    def partition_given(self, at: cython.Py_ssize_t) -> cython.int:
        column: IntColumn | None = self.columns.partitions
        if column is None or column.is_null(at):
            return STICKY
        number: cython.longlong = column.value(at)
        if number < 0 or number > MAX_INT32:
            raise IllegalArgumentError(
                f"Invalid partition: {column.exact(at)}. Partition number should always be non-negative or null."
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
        name: bytes | None = None
        if column is not None:
            name = column.get(at)
            if name is None and self.columns.topic is None:
                raise IllegalArgumentError(
                    "null topic present in the data. Use the option 'topic' (send_batch: topic), or a topic column "
                    "without nulls"
                )
        topic: str = self.columns.topic or "" if name is None else name.decode("utf-8", "replace")
        self.state = self.ready(topic, number)
        if column is not None:
            self.topics.add(name, self.state)
        return self.state

    @cython.cfunc
    def ready(self, topic: str, number: cython.int) -> TopicState:
        state: TopicState | None = self.path.accumulator.topics.get(topic)
        if state is None or state.partition_count == 0 or state.missing or number >= state.partition_count:
            deadline: cython.double = self.path.clock.now() + self.path.max_block_ms
            state = self.path._topic_for_sending(topic, number, True, deadline)
        return state

    # With interceptors

    def append_intercepted(self, at: cython.Py_ssize_t, row: cython.Py_ssize_t) -> cython.int:
        """As ``append``, with interceptors; a row passes those with ``on_send`` as a ProducerRecord of bytes."""
        chain: Any = self.path.interceptors
        record: Any = None
        callback: Acknowledged | None = self.path.for_all
        if self.path.shows_records:
            # A producer with interceptors imported it when it was made (``_assembly``).  Others start faster without.
            from forebay.model._arguments import as_record

            record = chain.on_send(as_record(*self.given_at(at)))
            callback = Acknowledged(chain, None, record.headers)
        elif callback is None:
            callback = Acknowledged(chain, None, self.given_at(at)[3])
        try:
            if self.path.shows_records:
                return self.append_record(record, row, callback)
            return self.append(at, row, callback)
        except Exception as error:
            callback.tell_failure(record, self.given_at(at), error)
            raise

    def given_at(self, at: int) -> tuple[Any, ...]:
        """A row as the arguments of ``send``."""
        from forebay._records.reader import read_headers  # as above

        topic, partition, timestamp, key, value, section = self.columns.row(at)
        return topic, value, key, read_headers(section), partition, timestamp

    def append_record(self, given: ProducerRecord, row: cython.Py_ssize_t, callback: object) -> cython.int:
        """One record into its batch.

        Raises:
            TypeError: key or value are not bytes.  Columns pass no serializer, so an interceptor must return bytes.
        """
        key = plain_bytes("key", given.key)
        value = plain_bytes("value", given.value)
        number: cython.int = STICKY if given.partition is None else checked_partition(given.partition)
        timestamp: cython.longlong = self.wall if given.timestamp is None else checked_timestamp(given.timestamp)
        section: bytes = encode_headers(given.headers) if given.headers else NO_HEADERS
        state: TopicState = self.ready(given.topic, number)
        record: RecordView = record_view(timestamp, key, value, section)
        self.path.check_size(view_of(record))
        if number < 0:
            number = self.path.choose_partition(state, key, key, value, value)
        return self.place(state, number, view_of(record), row, callback)


def plain_bytes(what: str, value: object) -> bytes | None:
    """Checks a key or value that an interceptor returned."""
    if value is None or isinstance(value, bytes):
        return value
    raise TypeError(
        f"an interceptor made the {what} a {type(value).__name__}; columns pass no serializer: allowed are bytes, None"
    )
