"""BatchAppender: how records come into batches, on the application's threads.

``append`` never blocks.  It writes the record into the partition's open batch.  If that has no room, it starts a new
batch with memory from the pool.  If there is no memory, it answers WAIT: the caller waits on its ticket and calls
again.  ``try_append`` is the first of these steps, and enough for nearly every record.  ``try_rows`` does it for many
rows of columns at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cython
from cython.cimports.forebay._accumulator.batch import new_batch
from cython.cimports.forebay._accumulator.chunks import chunk_size
from cython.cimports.forebay._accumulator.records import new_records
from cython.cimports.forebay._accumulator.states import APPENDED, BEGUN, CHUNK_FULL, MADE_FULL, NO_ROOM, OPEN, WAIT
from cython.cimports.forebay._delivery.future import new_future
from cython.cimports.forebay._records.batch_v2 import encode_headers, record_body_size, record_size
from cython.cimports.forebay._runtime.mutex import acquire, give_way, release
from cython.cimports.forebay._runtime.primitives import RecordPointer, RecordView, record_view, view_of

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.closing import BatchCloser
from forebay._accumulator.incomplete import IncompleteBatches
from forebay._accumulator.pool import Buffer, BufferPool
from forebay._accumulator.records import RecordsBuilder
from forebay._accumulator.schedule import BatchSchedule
from forebay._accumulator.topic import PartitionQueue, TopicState
from forebay._delivery.future import RecordFuture
from forebay._records.rows import RowWindow
from forebay.errors import ProducerClosedError

# Statuses between the steps of an append, beside its answers (states).
NEEDS_BATCH = cython.declare(cython.int, 8)
NEEDS_CHUNK = cython.declare(cython.int, 16)
STICKY_MOVED = cython.declare(cython.int, 32)
CLOSED_LAST = cython.declare(cython.int, 64)


@cython.final
@cython.cclass
class BatchAppender:
    """Any application thread; each step under the lock of the partition's queue.

    Args:
        pool: the memory that new batches take.
        schedule: told of each batch that was started or became full.
        closer: compresses full batches.
        incomplete: says whether appends are accepted at all, and lists the new batches.
        batch_size: bytes of header and records after which a batch is full (``batch.size``, at least 1).
        max_raw_size: most bytes of a compressed batch before compression (``max.request.size``); 0 for no limit.  A
            batch that compresses worse than expected could be split, but a split reads every record back on the
            sender's thread.
    """

    def __init__(
        self,
        pool: BufferPool,
        schedule: BatchSchedule,
        closer: BatchCloser,
        incomplete: IncompleteBatches,
        batch_size: cython.Py_ssize_t,
        max_raw_size: cython.Py_ssize_t,
    ) -> None:
        self.pool = pool
        self.schedule = schedule
        self.closer = closer
        self.incomplete = incomplete
        self.batch_size = max(batch_size, 1)
        self.codec_id = closer.codec_id
        self.max_raw_size = max_raw_size
        self.guard: Any = None  # says why no append is accepted while it is sealed

    @cython.cfunc
    @cython.exceptval(-1)
    def append(
        self,
        topic: TopicState,
        partition: cython.int,
        record: RecordPointer,
        future: RecordFuture | None,
        callback: Any,
        ticket: Any,
        now: cython.double,
    ) -> cython.int:
        """Appends the record to a batch, or answers WAIT.

        Args:
            partition: its number, or -1 for the sticky one.
            ticket: waits for memory after WAIT; None does not wait at all.
            now: monotonic ms, read after the last wait.  A new batch counts its age from here.

        Raises:
            ProducerClosedError: the producer was closed meanwhile.
            KafkaError: the guard's, while appends are sealed.
        """
        buffer: Buffer | None = None
        try:
            while True:
                if self.refuses():
                    raise self.refusal()
                status: cython.int = self.try_append(topic, partition, record, future, callback)
                if status == NEEDS_CHUNK:
                    self.extend(topic, partition, record)
                    continue
                if status == NEEDS_BATCH:
                    if buffer is None:
                        buffer = self.allocate(topic, partition, record, ticket)
                        if buffer is None:
                            # It may have been sealed, and the waiters woken, before this ticket was one of them.
                            if self.refuses():
                                raise self.refusal()
                            return WAIT
                    status = self.start_batch(topic, partition, buffer, record, future, callback, now)
                if status & APPENDED:
                    break
        except BaseException:
            # Also after Ctrl-C and a MemoryError.
            self.drop_unused(buffer, ticket)
            raise
        self.drop_unused(buffer, ticket)
        return status

    @cython.cfunc
    def allocate(self, topic: TopicState, partition: cython.int, record: RecordPointer, ticket: Any) -> Buffer | None:
        sticky: cython.bint = partition < 0
        queue: PartitionQueue = self.queue_of(topic, partition)
        size: cython.Py_ssize_t = self.size_for(record, queue)
        if sticky and topic.leave_full_node(queue, size, self.pool):
            queue = self.queue_of(topic, partition)
        return self.pool.allocate(size, queue.leader_id, ticket, sticky)

    @cython.cfunc
    @cython.exceptval(-1)
    def drop_unused(self, buffer: Buffer | None, ticket: Any) -> cython.int:
        # The caller no longer holds the buffer (a batch that took it has its own hold), and an unused grant goes back.
        if buffer is not None:
            buffer.release()
        if ticket is not None and ticket.grant is not None:
            self.pool.cancel(ticket)
        return 0

    def append_bytes(
        self,
        topic: TopicState,
        partition: int,
        value: bytes | None,
        *,
        now: float,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int = 0,
        callback: Any = None,
        ticket: Any = None,
    ) -> tuple[int, RecordFuture]:
        """``append`` for callers that are not compiled: its status, and a future, valid if the status has APPENDED."""
        section: bytes = encode_headers(headers)
        record: RecordView = record_view(timestamp, key, value, section)
        future: RecordFuture = new_future()
        return self.append(topic, partition, view_of(record), future, callback, ticket, now), future

    @cython.cfunc
    @cython.exceptval(check=False)
    def size_for(self, record: RecordPointer, queue: PartitionQueue) -> cython.Py_ssize_t:
        """Bytes of the chunk that a new batch with the record begins in."""
        alone: cython.Py_ssize_t = record_size(
            record_body_size(0, 0, record.key_size, record.value_size, record.headers_size)
        )
        return chunk_size(alone, queue.expected, self.batch_size)

    @cython.cfunc
    def queue_of(self, topic: TopicState, partition: cython.int) -> PartitionQueue:
        return topic.queue(topic.partitioner.partition if partition < 0 else partition)

    @cython.cfunc
    @cython.exceptval(-1)
    def try_append(
        self,
        topic: TopicState,
        partition: cython.int,
        record: RecordPointer,
        future: RecordFuture | None,
        callback: Any,
    ) -> cython.int:
        """APPENDED (and MADE_FULL), or NEEDS_BATCH, or NEEDS_CHUNK; the fast path of every send."""
        sticky: cython.bint = partition < 0
        queue: PartitionQueue
        status: cython.int = STICKY_MOVED
        while status == STICKY_MOVED:
            queue = self.queue_of(topic, partition)
            acquire(queue.lock)
            try:
                if not sticky or topic.partitioner.partition == queue.partition:
                    status = self.try_locked(topic, queue, sticky, record, future, callback)
            finally:
                release(queue.lock)
            if status & CLOSED_LAST:
                self.closer.compress_full(queue)
                status &= ~CLOSED_LAST
        return status

    @cython.cfunc
    @cython.exceptval(-1)
    def try_locked(
        self,
        topic: TopicState,
        queue: PartitionQueue,
        sticky: cython.bint,
        record: RecordPointer,
        future: RecordFuture | None,
        callback: Any,
    ) -> cython.int:
        batch: ProducerBatch | None = queue.last
        if sticky and (batch is None or batch.life != OPEN) and topic.partitioner.update(0, True):
            if topic.partitioner.is_changed(queue.partition):
                return STICKY_MOVED
        if batch is None:
            return NEEDS_BATCH
        records: RecordsBuilder = batch.records
        before: cython.Py_ssize_t = records.estimated_size() if records.compressed else 0
        size: cython.Py_ssize_t = batch.try_append(record, future, callback)
        if size == CHUNK_FULL:
            return NEEDS_CHUNK
        if size == NO_ROOM:
            return NEEDS_BATCH | self.close_last(queue, batch)
        full: cython.bint = records.is_full()
        if sticky:
            topic.partitioner.update(records.estimated_size() - before if records.compressed else size, full)
        if not full:
            # If the queue has older batches, the threads that filled them have woken the sender.
            return APPENDED
        return APPENDED | MADE_FULL | self.close_last(queue, batch)

    @cython.cfunc
    @cython.exceptval(check=False)
    def close_last(self, queue: PartitionQueue, batch: ProducerBatch) -> cython.int:
        # The thread that filled a batch compresses it, outside the lock.  LEFT keeps the sender off until then.
        self.schedule.announce(queue)
        if batch.life != OPEN:
            return 0
        batch.close_for_appends()
        batch.records.check_ahead()
        return CLOSED_LAST if batch.records.compressed and queue.leave_to_filler(batch) else 0

    @cython.cfunc
    @cython.exceptval(-1)
    def start_batch(
        self,
        topic: TopicState,
        partition: cython.int,
        buffer: Buffer,
        record: RecordPointer,
        future: RecordFuture | None,
        callback: Any,
        now: cython.double,
    ) -> cython.int:
        """Starts a batch with the record: APPENDED | BEGUN.  The batch then is a further holder of the buffer."""
        queue: PartitionQueue = self.queue_of(topic, partition)
        ratio: cython.double = self.closer.ratio(topic.name)
        limit: cython.Py_ssize_t = max(buffer.size, self.batch_size)
        records: RecordsBuilder = new_records(buffer, limit, self.codec_id, ratio, self.max_raw_size)
        batch: ProducerBatch = new_batch(queue, records, now, 0)
        acquire(queue.lock)
        try:
            status: cython.int = self.start_locked(topic, partition < 0, batch, record, future, callback)
        finally:
            release(queue.lock)
        if status & CLOSED_LAST:
            self.closer.compress_full(queue)
        return status & (APPENDED | BEGUN | MADE_FULL)

    @cython.cfunc
    @cython.exceptval(-1)
    def start_locked(
        self,
        topic: TopicState,
        sticky: cython.bint,
        batch: ProducerBatch,
        record: RecordPointer,
        future: RecordFuture | None,
        callback: Any,
    ) -> cython.int:
        queue: PartitionQueue = batch.queue
        if sticky and topic.partitioner.is_changed(queue.partition):
            return 0
        # Meanwhile another thread may have made a batch, or the delayed switch of the partition may be due.
        status: cython.int = self.try_locked(topic, queue, sticky, record, future, callback)
        if not status & NEEDS_BATCH:
            return status
        # Flush and close wait for every batch they know, so they know it as soon as it holds a record and not before.
        if not self.incomplete.admit(batch):
            return status & CLOSED_LAST
        try:
            batch.try_append(record, future, callback)
            queue.add(batch)
        except BaseException:  # no memory for the callback: a flush must not wait for a batch that is in no queue
            self.incomplete.discard(batch)
            raise
        batch.records.buffer_at(0).retain()
        self.schedule.announce(queue)
        full: cython.bint = batch.is_full()
        if sticky:
            topic.partitioner.update(batch.estimated_size(), full)
        status = (status & CLOSED_LAST) | APPENDED | BEGUN
        if full:
            # One record as large as a batch is compressed here, not on the sender's thread.
            return status | MADE_FULL | self.close_last(queue, batch)
        return status | (MADE_FULL if len(queue.batches) > 1 else 0)

    @cython.cfunc
    def extend(self, topic: TopicState, partition: cython.int, record: RecordPointer) -> cython.void:
        """Gives the open batch a further chunk if one is free at once and no caller waits; else closes the batch."""
        queue: PartitionQueue = self.queue_of(topic, partition)
        spare: list[Any] = []  # see ``go_on_in``
        chunk: Buffer | None = self.pool.try_chunk(queue.leader_id)
        batch: ProducerBatch | None
        status: cython.int = 0
        acquire(queue.lock)
        try:
            batch = queue.last
            if batch is not None and batch.lacks_chunk(record):  # no other thread was here first
                if chunk is None:
                    status = self.close_last(queue, batch)
                else:
                    batch.add_chunk(chunk, spare)
                    chunk = None
        finally:
            release(queue.lock)
            if chunk is not None:
                chunk.release()
        if status & CLOSED_LAST:
            self.closer.compress_full(queue)

    @cython.cfunc
    @cython.exceptval(check=False)
    def refuses(self) -> cython.bint:
        return self.incomplete.closed or self.incomplete.sealed

    @cython.cfunc
    def refusal(self) -> Any:
        if self.incomplete.closed or self.guard is None:
            return ProducerClosedError("Producer closed while send in progress")
        return self.guard.refusal()

    @cython.cfunc
    def try_rows(
        self, topic: TopicState, partition: cython.int, rows: RowWindow, at: cython.Py_ssize_t, until: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Appends rows ``order[at:until]`` to the open batch under one lock, while it has room; where it stopped.

        The caller goes on with ``append``, so that every rule about batches stays there.

        Args:
            partition: its number, or -1 for the sticky one.
            rows: gets ``taker`` (the batch's result), ``first_index`` (of the first row in the batch), ``filled``, and
                ``taken`` (the answer, for a caller that Ctrl-C interrupts while a full batch is compressed).
        """
        rows.taken = at
        queue: PartitionQueue = self.queue_of(topic, partition)
        to_close: cython.int = 0
        acquire(queue.lock)
        try:
            batch: ProducerBatch | None = queue.last
            if batch is None or batch.is_full() or (partition < 0 and topic.partitioner.is_changed(queue.partition)):
                return at
            before: cython.Py_ssize_t = batch.estimated_size()
            rows.taker = batch.result
            rows.first_index = batch.record_count
            until = batch.append_rows(rows, at, until)
            rows.taken = until
            rows.filled = batch.is_full()
            if partition < 0 and until > at:
                topic.partitioner.update(batch.estimated_size() - before, rows.filled)
            if rows.filled:
                to_close = self.close_last(queue, batch)
        finally:
            release(queue.lock)
        if not rows.filled:
            # Another window is about to follow.  The sender would wait for the lock until the batch is full.
            give_way(queue.lock)
        if to_close:
            self.closer.compress_full(queue)
        return until
