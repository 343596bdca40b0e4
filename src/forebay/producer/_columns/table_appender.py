"""TableAppender puts rows of columns into the accumulator, a window at a time, mostly without the GIL.

A window's rows are hashed and grouped by topic and partition in plain arrays.  Each group is encoded into the open
batch under one lock.  A row that needs more (a new batch, memory, metadata, an error) is appended by the rules of
``send()``.  Rows of a partition keep their order.  So a window holds either rows whose partition is given by a key or a
number, or rows that may go to any partition, never both.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import cython
from cython.cimports.forebay._accumulator.states import STICKY, WORTH_WAKING
from cython.cimports.forebay._records.layout import BATCH_OVERHEAD, MAX_RECORD_OVERHEAD
from cython.cimports.forebay._runtime.primitives import MAX_INT32, RecordView, view_of
from cython.cimports.forebay.producer._path import OPEN

from forebay._accumulator.topic import TopicState
from forebay._delivery.result import BatchResult
from forebay._records.rows import RowWindow
from forebay.errors import KafkaError
from forebay.producer._columns.batch_delivery import BatchDelivery
from forebay.producer._columns.columns import Columns
from forebay.producer._columns.row_appender import RowAppender
from forebay.producer._columns.row_share import RowShare
from forebay.producer._path import SendPath

NULL = cython.declare(cython.longlong, -1)
WINDOW = cython.declare(cython.Py_ssize_t, 2048)
"""Rows.  Their arrays (200 KiB) stay in the processor's L2 cache, and a row's index fits into two bytes."""


@cython.final
@cython.cclass
class TableAppender:
    """One call of ``send_batch``, from one piece of the table to the next.

    Args:
        path: a KafkaProducer; its serializers are not used.
        delivery: gets every row that was appended, also before an error.
    """

    path: SendPath
    columns: Columns
    delivery: BatchDelivery
    alone: RowAppender
    rows: RowWindow
    first_row: cython.Py_ssize_t
    row: cython.Py_ssize_t
    placed: cython.Py_ssize_t
    mixed_until: cython.Py_ssize_t
    count: cython.Py_ssize_t
    before: cython.Py_ssize_t

    def __init__(self, path: SendPath, delivery: BatchDelivery) -> None:
        self.path = path
        self.columns = Columns(0, None)
        self.delivery = delivery
        self.alone = RowAppender(path, delivery)
        self.rows = RowWindow(1)
        self.first_row = 0
        # The number in the table of the window's first row, or of the row that is appended alone.
        self.row = 0
        # Rows before this one are appended one by one, because rows of both kinds alternate.
        self.mixed_until = 0
        # The window has ``count`` rows; those before ``order[placed]`` are in batches.
        self.placed = self.count = 0
        # Rows in the delivery before the window, or before the row that is appended alone.
        self.before = 0

    def append(self, columns: Columns, first_row: cython.Py_ssize_t) -> None:
        """Puts every row into a batch.  As ``send()``, it waits for memory and metadata, max.block.ms for each row.

        Args:
            first_row: the number of the first row in messages and in the delivery.

        Raises:
            KafkaError: a row cannot be taken: too large, no memory in time, no such topic or partition, a header
                without a key ...  Its context has ``row``, the first row that was not taken.  All rows before it were
                taken, and perhaps some of the same window after it; the delivery knows them.
        """
        if self.path._state != OPEN:
            raise self.path._refusal()
        if self.rows.capacity < min(WINDOW, columns.length):
            self.rows = RowWindow(min(WINDOW, columns.length))
        self.columns = columns
        self.alone.columns = columns
        self.first_row = self.row = first_row
        self.mixed_until = self.placed = self.count = 0
        try:
            self.run()
        except BaseException as error:
            missing = self.left()
            self.delivery._stop_at(self.row + max(self.count, 1), missing)
            if isinstance(error, KafkaError):
                error.with_context(row=missing[0] if missing else self.row + self.count)
            raise
        self.delivery._stop_at(first_row + columns.length, ())

    def helped(self) -> AbstractContextManager[None]:
        """In this context other threads compress the batches that are filled."""
        return self.path.accumulator.closer.helped()

    @cython.cfunc
    def run(self) -> cython.void:
        by_window: cython.bint = self.path.partitioner is None and self.path.interceptors is None
        at: cython.Py_ssize_t = 0
        count: cython.Py_ssize_t
        status: cython.int
        while at < self.columns.length:
            self.before = self.delivery.rows
            self.row = self.first_row + at
            self.delivery._trim()
            self.alone.wall = self.path.clock.wall()
            count = 0
            if by_window and at >= self.mixed_until:
                count = self.load(at, min(self.rows.capacity, self.columns.length - at))
            if count > 0:
                self.place(count)
            else:
                if self.path.interceptors is None:
                    status = self.alone.append(at, self.row, None)
                else:
                    status = self.alone.append_intercepted(at, self.row)
                if status & WORTH_WAKING:
                    self.path.wake()
                count = 1
            at += count

    # Columns into the window

    @cython.cfunc
    def load(self, at: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Fills the window from row ``at`` on; returns its rows, up to the first that must be appended alone."""
        rows: RowWindow = self.rows
        columns: Columns = self.columns
        count = self.load_topics(at, count)
        if count == 0:
            return 0
        count = columns.fill_bytes(rows, at, count)
        rows.values_only = columns.keys is None and columns.headers is None and columns.timestamps is None
        count = self.load_numbers(at, count)
        count = self.fitting(count)
        if columns.keys is not None and not self.path.ignore_keys:
            with cython.nogil:
                rows.partition_by_key(count)
        alike: cython.Py_ssize_t = self.alike(count)
        if alike < count:
            # Where both kinds alternate, filling a window for a few rows would cost more than it saves.
            self.mixed_until = at + count
        return alike

    @cython.cfunc
    def load_topics(self, at: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        rows: RowWindow = self.rows
        if self.columns.topics is not None:
            return self.alone.topics.assign(self.columns.topics, rows, at, count)
        state: TopicState | None = self.alone.state
        if state is None or state.partition_count == 0 or state.missing:
            return 0
        number: cython.Py_ssize_t
        # Read once: the sender's thread may apply newer metadata at any moment.
        limit: cython.longlong = state.partition_count
        limits = rows.limits
        for number in range(count):
            limits[number] = limit
        return count

    @cython.cfunc
    @cython.exceptval(check=False)
    def alike(self, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        # How many rows are of the same kind as the first: with a partition, or for any partition.
        rows: RowWindow = self.rows
        number: cython.Py_ssize_t
        for number in range(1, count):
            if (rows.partitions[number] < 0) != (rows.partitions[0] < 0):
                return number
        return count

    @cython.cfunc
    def load_numbers(self, at: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        rows: RowWindow = self.rows
        number: cython.Py_ssize_t
        timestamps = rows.timestamps
        partitions = rows.partitions
        wall: cython.longlong = self.alone.wall
        if self.columns.timestamps is None:
            for number in range(count):
                timestamps[number] = wall
        else:
            count = self.columns.timestamps.fill(at, count, self.alone.wall, rows.timestamps)
        if self.columns.partitions is None:
            for number in range(count):
                partitions[number] = NULL
            return count
        count = self.columns.partitions.fill(at, count, NULL, MAX_INT32, rows.partitions)
        for number in range(count):
            if rows.partitions[number] >= rows.limits[number]:
                return number
        return count

    @cython.cfunc
    @cython.exceptval(check=False)
    def fitting(self, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        # How many rows come before the first one that is larger than any record may be.
        rows: RowWindow = self.rows
        number: cython.Py_ssize_t
        most: cython.longlong = self.path.max_record_size - (BATCH_OVERHEAD + MAX_RECORD_OVERHEAD) + 1
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
        topic: cython.Py_ssize_t
        rows.keep_order(count)
        self.placed = 0
        self.count = count
        if self.columns.topics is None:
            self.place_topic(cython.cast(TopicState, self.alone.state), count)
        else:
            rows.sort_by_topic(count, len(self.alone.topics.states))
            while self.placed < count:
                # The topic of the next rows, and how many there are.  ``ends`` is in use for partitions.
                topic = rows.topics[rows.order[self.placed]]
                end: cython.Py_ssize_t = self.placed + 1
                while end < count and rows.topics[rows.order[end]] == topic:
                    end += 1
                self.place_topic(cython.cast(TopicState, self.alone.topics.states[topic]), end)
        self.count = 0

    @cython.cfunc
    def place_topic(self, state: TopicState, until: cython.Py_ssize_t) -> cython.void:
        """Appends rows ``order[placed:until]``, all of one topic."""
        rows: RowWindow = self.rows
        if rows.partitions[0] < 0:
            self.feed(state, STICKY, until)
            return
        partitions: cython.Py_ssize_t = rows.limits[rows.order[self.placed]]
        rows.sort_by_partition(self.placed, until, partitions)
        while self.placed < until:
            partition: cython.longlong = rows.partitions[rows.order[self.placed]]
            self.feed(state, cython.cast(cython.int, partition), rows.ends[partition + 1])

    @cython.cfunc
    def feed(self, state: TopicState, partition: cython.int, until: cython.Py_ssize_t) -> cython.void:
        """Appends rows ``order[placed:until]`` of the window, all of one partition; may wait for memory."""
        rows: RowWindow = self.rows
        while self.placed < until:
            at: cython.Py_ssize_t = self.placed
            try:
                self.path.appender.try_rows(state, partition, rows, at, until)
            finally:
                # Rows that were taken count, even if Ctrl-C comes while a full batch is compressed.
                if rows.taken > at:
                    self.note(at, rows.taken)
                    self.placed = rows.taken
            if rows.taken > at:
                if rows.filled:
                    self.path.wake()
                continue
            self.append_alone(state, partition, rows.order[at])

    @cython.cfunc
    def append_alone(self, state: TopicState, partition: cython.int, number: cython.Py_ssize_t) -> cython.void:
        # The row that needs another batch, or another chunk of memory.
        rows: RowWindow = self.rows
        record: RecordView = RecordView(
            timestamp=rows.timestamps[number],
            key=rows.key_cells[number],
            key_size=rows.key_sizes[number],
            value=rows.value_cells[number],
            value_size=rows.value_sizes[number],
            headers=rows.header_cells[number],
            headers_size=rows.header_sizes[number],
        )
        taken: cython.Py_ssize_t = self.delivery.rows
        try:
            status: cython.int = self.alone.place(state, partition, view_of(record), self.row + number, None)
        finally:
            self.placed += self.delivery.rows - taken
        if status & WORTH_WAKING:
            self.path.wake()

    @cython.cfunc
    def note(self, at: cython.Py_ssize_t, until: cython.Py_ssize_t) -> cython.void:
        rows: RowWindow = self.rows
        result: BatchResult = cython.cast(BatchResult, rows.taker)
        share: RowShare = self.delivery._share_of(result, rows.timestamps[rows.order[at]])
        share.add_scattered(rows.first_index, self.row, rows.order, at, until)
        self.delivery.rows += until - at
        self.delivery.raw_bytes += rows.written

    def left(self) -> list[int]:
        """The rows of the window that are in no batch, ascending; without a window, the row that was refused."""
        if self.count == 0:
            return [] if self.delivery.rows > self.before else [self.row]
        return sorted([self.row + self.rows.order[at] for at in range(self.placed, self.count)])


def append_columns(path: SendPath, columns: Columns, delivery: BatchDelivery, first_row: int = 0) -> None:
    """The rows of one piece of a table; see ``TableAppender.append``."""
    appender = TableAppender(path, delivery)
    with appender.helped():
        appender.append(columns, first_row)
