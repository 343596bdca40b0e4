"""``append_columns``: the rows of columns into the accumulator, a window at a time, most of it without the GIL.

A window's rows are hashed and grouped by partition in plain arrays, and each group is encoded straight into the open
batch under one lock.  Where a batch is full, and wherever a row needs more than that (memory, metadata, an error), the
rules of ``send()`` take over for that one row.  Rows of a partition keep their order: a window holds either rows that a
key or a number puts into a partition, or rows that may go anywhere, never both.
"""

from __future__ import annotations

import cython

from forebay.errors import IllegalArgumentError, KafkaError

if cython.compiled:
    from cython.cimports.forebay._accumulator.bulk import try_rows
    from cython.cimports.forebay._accumulator.topic import TopicState
    from cython.cimports.forebay._codec._prim import (
        RecordView,
        bytearray_pointer,
        bytearray_pointer_at,
        no_bytes,
        view_of,
    )
    from cython.cimports.forebay._columnar.columns import Columns
    from cython.cimports.forebay._columnar.deliveries import Deliveries, Share
    from cython.cimports.forebay._columnar.row import RowAppender
    from cython.cimports.forebay._future import BatchResult
    from cython.cimports.forebay._records.rows import RowWindow
    from cython.cimports.forebay._send import SendPath
else:
    from forebay._accumulator.bulk import try_rows
    from forebay._accumulator.topic import TopicState
    from forebay._codec._prim import (
        RecordView,
        bytearray_pointer,
        bytearray_pointer_at,
        no_bytes,
        view_of,
    )
    from forebay._columnar.columns import Columns
    from forebay._columnar.deliveries import Deliveries, Share
    from forebay._columnar.row import RowAppender
    from forebay._future import BatchResult
    from forebay._records.rows import RowWindow
    from forebay._send import SendPath

from forebay._columnar.columns import NO_HEADERS

WORTH_WAKING = cython.declare(cython.int, 6)
STICKY = cython.declare(cython.int, -1)
NULL = cython.declare(cython.longlong, -1)
UNBOUNDED = cython.declare(cython.double, -1.0)
RECORD_OVERHEAD = cython.declare(cython.Py_ssize_t, 61 + 21)
"""Of a record in a batch of its own, from above; as ``SendPath.check_size`` has it."""
WINDOW = cython.declare(cython.Py_ssize_t, 2048)
"""Rows; their arrays (150 KiB) stay in the processor's second cache."""


@cython.final
@cython.cclass
class WindowAppender:
    """One call of ``append_columns``."""

    path: SendPath
    columns: Columns
    deliveries: Deliveries
    alone: RowAppender
    rows: RowWindow
    sections: bytearray
    row: cython.Py_ssize_t
    partition_count: cython.int
    placed: cython.Py_ssize_t
    mixed_until: cython.Py_ssize_t
    count: cython.Py_ssize_t

    def __init__(self, path: SendPath, columns: Columns, deliveries: Deliveries) -> None:
        self.path = path
        self.columns = columns
        self.deliveries = deliveries
        self.alone = RowAppender(path, columns, deliveries)
        self.rows = RowWindow(min(WINDOW, columns.length))
        # Headers are encoded here, for all rows of the window.
        self.sections = bytearray(0)
        # The first row of the window, or the one that is looked at alone; with ``first_row``, for the error's context.
        self.row = 0
        # As it was when the window was filled: the sender's thread may take in other metadata at any moment.
        self.partition_count = 0
        # Up to there rows go one by one, because they are of both kinds.
        self.mixed_until = 0
        # Of the window's ``count`` rows those before ``order[placed]`` are in batches.
        self.placed = self.count = 0

    @cython.cfunc
    def run(self, first_row: cython.Py_ssize_t) -> cython.void:
        by_window: cython.bint = self.columns.topics is None and self.path.partitioner is None
        at: cython.Py_ssize_t = 0
        count: cython.Py_ssize_t
        while at < self.columns.length:
            count = 0
            if by_window and at >= self.mixed_until:
                count = self.load(at, min(self.rows.capacity, self.columns.length - at))
            self.row = first_row + at
            if count > 0:
                self.place(count)
            else:
                if self.alone.append(at, first_row + at) & WORTH_WAKING:
                    self.path.wake()
                count = 1
            at += count

    # Columns into the window

    @cython.cfunc
    def load(self, at: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Fills the window from row ``at`` on; how many rows it has, up to the first that has to be looked at alone."""
        state: TopicState | None = self.alone.state
        if state is None or state.partition_count == 0 or state.missing:
            return 0
        self.partition_count = state.partition_count
        rows: RowWindow = self.rows
        columns: Columns = self.columns
        if columns.keys is None:
            rows.keys.fill_with(count, no_bytes(), NULL)
        else:
            rows.keys.fill(columns.keys, at, count)
        rows.values.fill(columns.values, at, count)
        count = self.load_headers(at, count)
        count = self.load_numbers(at, count, self.partition_count)
        count = self.fitting(count)
        if columns.keys is not None and not self.path.ignore_keys:
            with cython.nogil:
                rows.partition_by_key(count, self.partition_count)
        alike: cython.Py_ssize_t = self.alike(count)
        if alike < count:
            # Where both kinds take turns, filling a window for a few rows would cost more than it saves.
            self.mixed_until = at + count
        return alike

    @cython.cfunc
    @cython.exceptval(check=False)
    def alike(self, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        # Rows before the first one of the other kind: with a partition, or for any.
        rows: RowWindow = self.rows
        number: cython.Py_ssize_t
        for number in range(1, count):
            if (rows.partitions[number] < 0) != (rows.partitions[0] < 0):
                return number
        return count

    @cython.cfunc
    def load_headers(self, at: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        rows: RowWindow = self.rows
        if self.columns.headers is None:
            rows.headers.fill_with(count, bytearray_pointer(NO_HEADERS), 1)
            return count
        encoded: list[bytes] = []
        number: cython.Py_ssize_t
        for number in range(count):
            try:
                encoded.append(self.columns.headers.section(at + number))
            except IllegalArgumentError:
                count = number
                break
        self.sections = bytearray(b"".join(encoded))
        offset: cython.Py_ssize_t = 0
        for number in range(count):
            rows.header_sizes[number] = len(encoded[number])
            rows.header_cells[number] = bytearray_pointer_at(self.sections, offset)
            offset += len(encoded[number])
        return count

    @cython.cfunc
    def load_numbers(
        self, at: cython.Py_ssize_t, count: cython.Py_ssize_t, partitions: cython.longlong
    ) -> cython.Py_ssize_t:
        rows: RowWindow = self.rows
        number: cython.Py_ssize_t
        for number in range(count):
            try:
                rows.timestamps[number] = self.alone.timestamp_of(at + number)
                rows.partitions[number] = self.alone.partition_given(at + number)
            except IllegalArgumentError:
                return number
            if rows.partitions[number] >= partitions:
                return number
        return count

    @cython.cfunc
    @cython.exceptval(check=False)
    def fitting(self, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        # Rows before the first one that is larger than any record may be.
        rows: RowWindow = self.rows
        number: cython.Py_ssize_t
        most: cython.longlong = self.path.max_record_size - RECORD_OVERHEAD + 1
        for number in range(count):
            size: cython.longlong = rows.header_sizes[number]
            size += max(rows.key_sizes[number], 0) + max(rows.value_sizes[number], 0)
            if size > most:
                return number
        return count

    # The window into batches

    @cython.cfunc
    def place(self, count: cython.Py_ssize_t) -> cython.void:
        rows: RowWindow = self.rows
        self.placed = 0
        self.count = count
        if self.columns.partitions is None and (self.columns.keys is None or self.path.ignore_keys):
            rows.keep_order(count)
            self.feed(STICKY, count)
        else:
            rows.group(count, self.partition_count)
            partition: cython.int
            for partition in range(-1, self.partition_count):
                self.feed(partition, rows.ends[partition + 1])
        self.count = 0

    @cython.cfunc
    def feed(self, partition: cython.int, until: cython.Py_ssize_t) -> cython.void:
        """Rows ``order[placed:until]`` of the window into batches of one partition; may wait for memory."""
        rows: RowWindow = self.rows
        state: TopicState = cython.cast(TopicState, self.alone.state)
        while self.placed < until:
            at: cython.Py_ssize_t = self.placed
            done: cython.Py_ssize_t = try_rows(self.path.accumulator, state, partition, rows, at, until)
            if done > at:
                self.note(at, done)
                self.placed = done
                if rows.filled:
                    self.path.wake()
                continue
            self.append_alone(partition, rows.order[at])

    @cython.cfunc
    def append_alone(self, partition: cython.int, number: cython.Py_ssize_t) -> cython.void:
        # The row that needs another batch, or another chunk of memory.
        rows: RowWindow = self.rows
        alone: RowAppender = self.alone
        record: RecordView = RecordView(
            timestamp=rows.timestamps[number],
            key=rows.key_cells[number],
            key_size=rows.key_sizes[number],
            value=rows.value_cells[number],
            value_size=rows.value_sizes[number],
            headers=rows.header_cells[number],
            headers_size=rows.header_sizes[number],
        )
        status: cython.int = self.path.append_waiting(
            cython.cast(TopicState, alone.state), partition, view_of(record), alone.probe, None, True, UNBOUNDED
        )
        alone.note(self.row + number, record.timestamp, record.key_size, record.value_size, record.headers_size)
        self.placed += 1
        if status & WORTH_WAKING:
            self.path.wake()

    @cython.cfunc
    def note(self, at: cython.Py_ssize_t, until: cython.Py_ssize_t) -> cython.void:
        rows: RowWindow = self.rows
        result: BatchResult = cython.cast(BatchResult, rows.taker)
        number: cython.longlong = rows.order[at]
        share: Share = self.deliveries.share_of(result, self.row + number, rows.timestamps[number])
        share.add(rows.first_index, cython.cast(cython.int, until - at))
        self.deliveries.rows += until - at
        self.deliveries.raw_bytes += rows.written

    @cython.cfunc
    def first_left(self) -> cython.Py_ssize_t:
        # The first row that is in no batch: one of another partition than the one that was refused may be before it.
        if self.placed >= self.count:
            return self.row
        first: cython.longlong = self.rows.order[self.placed]
        at: cython.Py_ssize_t
        for at in range(self.placed, self.count):
            first = min(first, self.rows.order[at])
        return self.row + first


def append_columns(path: SendPath, columns: Columns, deliveries: Deliveries, first_row: int = 0) -> None:
    """Puts every row into a batch; waits for memory and metadata as ``send()`` does, at most max.block.ms a row.

    Args:
        path: a KafkaProducer; its serializers and interceptors are not asked.
        deliveries: gets every row that was appended, those before an error too.
        first_row: the number of the first row in messages and in ``deliveries``.

    Raises:
        KafkaError: a row cannot be taken: too large, no memory in time, no such topic or partition, a header
            without a key ...  Its context has ``row``, the first that was not taken: all before it were, and
            behind it none but some nearby of other partitions.
    """
    if path.state != 0:
        raise path._refusal()
    appender: WindowAppender = WindowAppender(path, columns, deliveries)
    try:
        appender.run(first_row)
    except KafkaError as error:
        error.with_context(row=appender.first_left())
        raise
