"""RecordAccumulator: where records wait, gathered into batches, until the sender takes them.

``append`` runs on the application's threads and never blocks: it writes the record into the partition's open
batch, or starts a new batch with memory from the pool, or answers WAIT, and then its ticket stands in the pool's
line and the caller waits on it and calls again.  What the sender's thread does with the batches is in
``schedule``.  Lock order: this lock, one queue's, then ``tracking``, the pool's or the schedule's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import cython

from forebay.errors import ProducerClosedError

if cython.compiled:
    from cython.cimports.forebay._accumulator.batch import ProducerBatch
    from cython.cimports.forebay._accumulator.pool import Buffer, BufferPool
    from cython.cimports.forebay._accumulator.schedule import BatchSchedule
    from cython.cimports.forebay._accumulator.topic import PartitionQueue, TopicChange, TopicState, change_of
    from cython.cimports.forebay._codec._prim import RecordView, bytearray_pointer, optional_pointer, optional_size
    from cython.cimports.forebay._future import RecordFuture, new_future
    from cython.cimports.forebay._records.batch_v2 import encode_headers, record_body_size, record_size
else:
    import threading

    from forebay._accumulator.batch import ProducerBatch
    from forebay._accumulator.pool import Buffer, BufferPool
    from forebay._accumulator.schedule import BatchSchedule
    from forebay._accumulator.topic import PartitionQueue, TopicChange, TopicState, change_of
    from forebay._codec._prim import RecordView, bytearray_pointer, optional_pointer, optional_size
    from forebay._future import RecordFuture, new_future
    from forebay._records.batch_v2 import encode_headers, record_body_size, record_size

logger = logging.getLogger("forebay.sender")

BATCH_HEADER = cython.declare(cython.Py_ssize_t, 61)

# What append answers.  WAIT: no memory now.  APPENDED, with FULL or NEW added when the sender should be woken.
WAIT = cython.declare(cython.int, 0)
APPENDED = cython.declare(cython.int, 1)
FULL = cython.declare(cython.int, 2)
NEW = cython.declare(cython.int, 4)
# Between the steps of append only.
NEEDS_BATCH = cython.declare(cython.int, 8)
NEEDS_CHUNK = cython.declare(cython.int, 16)
STICKY_MOVED = cython.declare(cython.int, 32)
CLOSED_LAST = cython.declare(cython.int, 64)


@cython.final
@cython.cclass
class RecordAccumulator:
    """Batches of all topics.

    Args:
        pool: the memory they may take.
        schedule: told of every batch; the sender's view of this object.
        batch_size: bytes of header and records after which a batch is full (``batch.size``, at least 1).
        compressor: of ``compression.type``; None for none.
        estimator: the compression ratios of this producer's topics; None without compression.
        make_partitioner: a BuiltInPartitioner for a topic's name.
        max_raw_size: most bytes of a compressed batch before compression (``max.request.size``); 0 for no limit.
    """

    def __init__(
        self,
        *,
        pool: BufferPool,
        schedule: BatchSchedule,
        batch_size: cython.Py_ssize_t,
        make_partitioner: Callable[[str], Any],
        compressor: Any = None,
        estimator: Any = None,
        max_raw_size: cython.Py_ssize_t = 0,
    ) -> None:
        self.pool = pool
        self.schedule = schedule
        self.batch_size = max(batch_size, 1)
        self.make_partitioner = make_partitioner
        self.compressor = compressor
        self.codec = None if compressor is None else compressor.type
        self.codec_id = 0 if compressor is None else int(compressor.type)
        self.estimator = estimator
        self.max_raw_size = max_raw_size
        self.wake: Callable[[], Any] | None = None  # ends the sender's wait
        self.topics: dict[str, TopicState] = {}
        self.open_batches: set[ProducerBatch] = set()
        self.closed = False
        self.flushes = 0
        if not cython.compiled:
            self.lock = threading.Lock()
            self.tracking = threading.Lock()

    # Topics

    @cython.ccall
    def topic(self, name: str) -> TopicState:
        """The state of a topic, made on first use."""
        state: TopicState | None = self.topics.get(name)
        if state is None:
            fresh: TopicState = TopicState(name, self.make_partitioner(name))
            state = self.topics.setdefault(name, fresh)
        return state

    @cython.ccall
    def refresh(self, name: str, cluster: Any) -> TopicState:
        """Brings one topic to what ``cluster`` says; any thread."""
        state: TopicState = self.topic(name)
        change: TopicChange = change_of(state, cluster)
        with self.lock:
            state.apply(change)
        return state

    def refresh_all(self, cluster: Any) -> None:
        """Brings every topic in use to what ``cluster`` says, and batches to their new leaders; sender thread."""
        for name in list(self.topics):
            self.refresh(name, cluster)
        self.schedule.follow_leaders()

    # Appending: any application thread

    @cython.cfunc
    def append(
        self,
        topic: TopicState,
        partition: cython.int,
        record: RecordView,
        future: RecordFuture | None,
        callback: Any,
        ticket: Any,
        now: cython.double,
    ) -> cython.int:
        """Takes the record into a batch, or answers WAIT.

        Args:
            partition: its number, or -1 for the sticky one.
            ticket: stands in the pool's line after WAIT; None does not wait at all.
            now: monotonic ms, read after the last wait; a new batch counts its age from here.

        Raises:
            ProducerClosedError: the producer was closed meanwhile.
        """
        buffer: Buffer | None = None
        status: cython.int
        try:
            while True:
                if self.closed:
                    raise ProducerClosedError("Producer closed while send in progress")
                status = self.try_append(topic, partition, record, future, callback)
                if status == NEEDS_CHUNK:
                    self.extend(topic, partition, record)
                    continue
                if status == NEEDS_BATCH:
                    if buffer is None:
                        owner: object = self.queue_of(topic, partition).leader_id
                        buffer = self.pool.allocate(self.size_for(record), owner, ticket)
                        if buffer is None:
                            return WAIT
                    status = self.start_batch(topic, partition, buffer, record, future, callback, now)
                if status & APPENDED:
                    break
        except BaseException:
            # Ctrl-C and a lack of memory included.
            self.settle(buffer, ticket)
            raise
        self.settle(buffer, ticket)
        return status

    @cython.cfunc
    def settle(self, buffer: Buffer | None, ticket: Any) -> cython.void:
        # The caller's hold ends (a batch that took the buffer has its own), and a grant that is not needed goes back.
        if buffer is not None:
            buffer.release()
        if ticket is not None and ticket.grant is not None:
            self.pool.cancel(ticket)

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
        """``append`` for callers that are not compiled: its status and the record's future.

        The future belongs to a batch only if the status has APPENDED.
        """
        section: bytearray = encode_headers(headers)
        record: RecordView = RecordView(
            timestamp=timestamp,
            key=optional_pointer(key),
            key_size=optional_size(key),
            value=optional_pointer(value),
            value_size=optional_size(value),
            headers=bytearray_pointer(section),
            headers_size=len(section),
        )
        future: RecordFuture = new_future()
        return self.append(topic, partition, record, future, callback, ticket, now), future

    @cython.cfunc
    def size_for(self, record: RecordView) -> cython.Py_ssize_t:
        alone: cython.Py_ssize_t = record_size(
            record_body_size(0, 0, record.key_size, record.value_size, record.headers_size)
        )
        return max(self.batch_size, BATCH_HEADER + alone)

    @cython.cfunc
    def queue_of(self, topic: TopicState, partition: cython.int) -> PartitionQueue:
        return topic.queue(topic.partitioner.partition if partition < 0 else partition)

    @cython.cfunc
    def try_append(
        self, topic: TopicState, partition: cython.int, record: RecordView, future: RecordFuture | None, callback: Any
    ) -> cython.int:
        """APPENDED (and FULL), or NEEDS_BATCH, or NEEDS_CHUNK; the fast path of every send."""
        sticky: cython.bint = partition < 0
        queue: PartitionQueue
        status: cython.int = STICKY_MOVED
        while status == STICKY_MOVED:
            queue = self.queue_of(topic, partition)
            with queue.lock:
                if not sticky or not topic.partitioner.is_changed(queue.partition):
                    status = self.try_locked(topic, queue, sticky, record, future, callback)
            if status & CLOSED_LAST:
                self.close_full(queue)
                status &= ~CLOSED_LAST
        return status

    @cython.cfunc
    def try_locked(
        self,
        topic: TopicState,
        queue: PartitionQueue,
        sticky: cython.bint,
        record: RecordView,
        future: RecordFuture | None,
        callback: Any,
    ) -> cython.int:
        batch: ProducerBatch | None = queue.last
        if sticky and (batch is None or batch.is_full()) and topic.partitioner.update(0, True):
            if topic.partitioner.is_changed(queue.partition):
                return STICKY_MOVED
        if batch is None:
            return NEEDS_BATCH
        before: cython.Py_ssize_t = batch.estimated_size() if batch.compressed else 0
        size: cython.Py_ssize_t = batch.try_append(record, future, callback)
        if size < 0:
            return NEEDS_CHUNK
        if size == 0:
            return NEEDS_BATCH | self.close_last(queue, batch)
        full: cython.bint = batch.is_full()
        if sticky:
            topic.partitioner.update(batch.estimated_size() - before if batch.compressed else size, full)
        if not full:
            # Older batches of this queue are no news: who filled them has woken the sender.
            return APPENDED
        return APPENDED | FULL | self.close_last(queue, batch)

    @cython.cfunc
    @cython.exceptval(check=False)
    def close_last(self, queue: PartitionQueue, batch: ProducerBatch) -> cython.int:
        # The thread that filled a batch compresses it, outside the lock; ``closing`` keeps the sender off until then.
        if batch.closed_for_appends:
            return 0
        batch.close_for_appends()
        if not batch.compressed:
            return 0
        batch.closing = True
        queue.to_close.append(batch)
        return CLOSED_LAST

    @cython.cfunc
    def close_full(self, queue: PartitionQueue) -> cython.void:
        batch: ProducerBatch | None
        while True:
            batch = None
            with queue.lock:
                if len(queue.to_close) > 0:
                    batch = queue.to_close.pop()
            if batch is None:
                return
            try:
                self.close_batch(batch)
            except Exception:
                # The record was accepted, so its send() must not raise: the sender tries again, and fails the batch
                # if it cannot be closed.
                logger.debug("closing %r failed", batch, exc_info=True)
            finally:
                # Ctrl-C in the middle: the sender closes it then.
                with queue.lock:
                    batch.closing = False
                    abandoned: cython.bint = batch.let_go
                if abandoned:
                    batch.release()
                # The sender may have passed the batch over meanwhile, and nothing else tells it to look again.
                if self.wake is not None:
                    self.wake()

    @cython.cfunc
    def start_batch(
        self,
        topic: TopicState,
        partition: cython.int,
        buffer: Buffer,
        record: RecordView,
        future: RecordFuture | None,
        callback: Any,
        now: cython.double,
    ) -> cython.int:
        """A new batch that holds the record: APPENDED | NEW.  The batch is a further holder of the buffer then."""
        queue: PartitionQueue = self.queue_of(topic, partition)
        batch: ProducerBatch = ProducerBatch(
            queue,
            topic.name,
            queue.partition,
            buffer,
            write_limit=buffer.size,
            created=now,
            codec_id=self.codec_id,
            compression_ratio=1.0 if self.codec_id == 0 else self.estimator.estimation(topic.name, self.codec),
            raw_limit=self.max_raw_size,
        )
        idle: cython.bint
        with queue.lock:
            idle = not queue.scheduled
            status: cython.int = self.start_locked(topic, partition < 0, batch, record, future, callback)
        # First, since compressing may be interrupted: the queue counts as scheduled already.
        if status & NEW and idle:
            self.schedule.activate(queue)
        if status & CLOSED_LAST:
            self.close_full(queue)
        return status & (APPENDED | NEW | FULL)

    @cython.cfunc
    def start_locked(
        self,
        topic: TopicState,
        sticky: cython.bint,
        batch: ProducerBatch,
        record: RecordView,
        future: RecordFuture | None,
        callback: Any,
    ) -> cython.int:
        queue: PartitionQueue = batch.queue
        if sticky and topic.partitioner.is_changed(queue.partition):
            return 0
        # Another thread may have made a batch, or the switch that was held back may be due, meanwhile.
        status: cython.int = self.try_locked(topic, queue, sticky, record, future, callback)
        if not status & NEEDS_BATCH:
            return status
        # Known to flush and close from the moment it holds a record, and not before: they wait for all there are.
        with self.tracking:
            if self.closed:
                return status & CLOSED_LAST
            self.open_batches.add(batch)
        batch.try_append(record, future, callback)
        queue.add(batch)
        cython.cast(Buffer, batch.chunk).retain()
        queue.scheduled = True
        full: cython.bint = batch.is_full()
        if sticky:
            topic.partitioner.update(batch.estimated_size(), full)
        status = (status & CLOSED_LAST) | APPENDED | NEW
        if full:
            # One record as large as a batch: compressed here and not on the sender's thread.
            return status | FULL | self.close_last(queue, batch)
        return status | (FULL if len(queue.batches) > 1 else 0)

    @cython.cfunc
    def extend(self, topic: TopicState, partition: cython.int, record: RecordView) -> cython.void:
        """Gives the open batch a further chunk if one is free at once and nobody waits; else closes it."""
        queue: PartitionQueue = self.queue_of(topic, partition)
        chunk: Buffer | None = self.pool.try_chunk(queue.leader_id)
        batch: ProducerBatch | None
        status: cython.int = 0
        with queue.lock:
            batch = queue.last
            if batch is not None and batch.lacks_chunk(record):  # no other thread was here first
                if chunk is None:
                    status = self.close_last(queue, batch)
                else:
                    batch.add_chunk(chunk)
                    chunk = None
        if chunk is not None:
            chunk.release()
        if status & CLOSED_LAST:
            self.close_full(queue)

    # Closing batches: the thread that filled one, else the sender

    def close_batch(self, batch: ProducerBatch) -> None:
        """Makes a batch's bytes final and lets the ratio estimate learn from it."""
        if batch.closed:
            return
        batch.close(self.compressor)
        if batch.compressed:
            self.estimator.update(batch.topic, self.codec, batch.observed_ratio)

    def close_batches(self, batches: list[ProducerBatch]) -> None:
        """Closes what the sender drained, in one call of the compressor for all that no application thread closed."""
        open_ones = [batch for batch in batches if not batch.closed]
        if self.codec_id == 0 or len(open_ones) < 2:
            for batch in open_ones:
                self.close_batch(batch)
            return
        packed = self.compressor.compress_many([batch.pieces() for batch in open_ones])
        for batch, output in zip(open_ones, packed, strict=True):
            batch.close_with(output)
            self.estimator.update(batch.topic, self.codec, batch.observed_ratio)

    # Flush, and the end

    @cython.ccall
    def flushing(self) -> cython.bint:
        """True while somebody waits in flush(): linger does not count then."""
        return self.flushes > 0

    def begin_flush(self) -> list[ProducerBatch]:
        """Makes everything sendable; the batches that a flush has to wait for.  ``end_flush`` must follow."""
        return self.listed(1)

    def end_flush(self) -> None:
        """Ends what ``begin_flush`` began, however the wait went."""
        with self.tracking:
            self.flushes -= 1

    @cython.ccall
    def deallocate(self, batch: ProducerBatch) -> cython.void:
        """A batch has its outcome: it lets go of its memory, which returns once no request needs it."""
        with self.tracking:
            self.open_batches.discard(batch)
        queue: PartitionQueue = batch.queue
        with queue.lock:
            # A thread that compresses it still reads the memory, and lets go when it is through.
            batch.let_go = batch.closing
            held: cython.bint = batch.closing
        if not held:
            batch.release()

    def incomplete(self) -> list[ProducerBatch]:
        """Every batch without an outcome: open, waiting or in flight."""
        return self.listed(0)

    @cython.cfunc
    def listed(self, flushes: cython.int) -> list[Any]:
        # The list is made before the lock: making one may run the garbage collector, and so anybody's finalisers.
        at: cython.Py_ssize_t = 0
        while True:
            batches: list[Any] = [None] * (len(self.open_batches) + 8)
            with self.tracking:
                enough: cython.bint = len(self.open_batches) <= len(batches)
                if enough:
                    self.flushes += flushes
                    for batch in self.open_batches:
                        batches[at] = batch
                        at += 1
            if enough:
                return batches[:at]

    def take_waiting(self) -> list[ProducerBatch]:
        """Empties every queue (a forced close); the batches that were waiting.  Sender thread.

        Over all queues, not the schedule's lines: a queue gets its first batch before the schedule hears of it.
        """
        taken: list[Any] = []
        queue: PartitionQueue
        state: TopicState
        for state in list(self.topics.values()):
            for queue in list(state.queues):
                with queue.lock:
                    while len(queue.batches) > 0:
                        taken.append(queue.pop_head())
        return taken

    def has_incomplete(self) -> bool:
        """True while any batch has no outcome."""
        return len(self.open_batches) > 0

    def close(self) -> None:
        """Refuses further appends; what is in batches stays there."""
        with self.tracking:
            self.closed = True
        self.pool.close()

    def __repr__(self) -> str:
        return (
            f"<RecordAccumulator: {len(self.topics)} topics, {len(self.open_batches)} batches, "
            f"{self.pool.available()} of {self.pool.total} bytes free>"
        )
