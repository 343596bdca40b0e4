"""RecordAccumulator: where records wait, gathered into batches, until the sender takes them.

``append`` runs on the application's threads and never blocks: it writes the record into the partition's open
batch, or starts a new batch with memory from the pool, or answers WAIT, and then its ticket stands in the pool's
line and the caller waits on it and calls again.  What the sender's thread does with the batches is in
``schedule``.  Lock order: this lock, one queue's, then that of ``incomplete``, the pool's or the schedule's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cython
from cython.cimports.forebay._accumulator.batch import ProducerBatch, new_batch
from cython.cimports.forebay._accumulator.closing import BatchCloser, check_ahead
from cython.cimports.forebay._accumulator.drain import BatchDrain
from cython.cimports.forebay._accumulator.incomplete import IncompleteBatches
from cython.cimports.forebay._accumulator.pool import Buffer, BufferPool
from cython.cimports.forebay._accumulator.returning import MemoryReturn
from cython.cimports.forebay._accumulator.schedule import BatchSchedule
from cython.cimports.forebay._accumulator.states import APPENDED, BEGUN, MADE_FULL, OPEN, WAIT
from cython.cimports.forebay._accumulator.topic import PartitionQueue, TopicChange, TopicState, change_of
from cython.cimports.forebay._delivery.future import RecordFuture, new_future
from cython.cimports.forebay._records.batch_v2 import encode_headers, record_body_size, record_size
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release
from cython.cimports.forebay._runtime.primitives import RecordPointer, RecordView, record_view, view_of

from forebay.errors import ProducerClosedError

BATCH_HEADER = cython.declare(cython.Py_ssize_t, 61)

# Between the steps of append, beside what it answers (states).
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
        max_raw_size: most bytes of a compressed batch before compression (``max.request.size``); 0 for no limit.  What
            compresses worse than promised would be split, but that reads every record back on the sender's thread.
        clock: tells how long memory has been held back, see MemoryReturn.
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
        clock: Any,
    ) -> None:
        self.pool = pool
        self.schedule = schedule
        self.drain = BatchDrain(schedule)
        self.batch_size = max(batch_size, 1)
        self.make_partitioner = make_partitioner
        self.closer = BatchCloser(compressor, estimator)
        self.codec_id = self.closer.codec_id
        self.max_raw_size = max_raw_size
        self.topics: dict[str, TopicState] = {}
        self.incomplete_batches = IncompleteBatches()
        self.returning = MemoryReturn(pool, clock)
        self.guard: Any = None  # says why nothing is taken while it is sealed
        if not cython.compiled:
            self.lock = Mutex()

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
        acquire(self.lock)
        try:
            state.apply(change)
        finally:
            release(self.lock)
        return state

    def refresh_all(self, cluster: Any) -> None:
        """Brings every topic in use to what ``cluster`` says, and batches to their new leaders; sender thread."""
        for name in list(self.topics):
            self.refresh(name, cluster)
        self.schedule.follow_leaders()
        if self.pool.owner_limit > 0:
            # Those in line may wait for the share of a node that does not lead their partition any more.
            self.pool.wake_waiters()

    def in_use(self, name: str, since: float) -> bool:
        """Whether the topic has batches that wait, or had one sent from ``since`` (monotonic ms) on; sender thread.

        Only a new batch tells the metadata that its topic is wanted, and one may stay open for longer than
        metadata.max.idle.ms.
        """
        state: TopicState | None = self.topics.get(name)
        return state is not None and state.in_use(since)

    # Appending: any application thread

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
        """Takes the record into a batch, or answers WAIT.

        Args:
            partition: its number, or -1 for the sticky one.
            ticket: stands in the pool's line after WAIT; None does not wait at all.
            now: monotonic ms, read after the last wait; a new batch counts its age from here.

        Raises:
            ProducerClosedError: the producer was closed meanwhile.
            KafkaError: it is sealed; the guard's.
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
                            # Whoever sealed may have woken the line before we stood in it.
                            if self.refuses():
                                raise self.refusal()
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
    def allocate(self, topic: TopicState, partition: cython.int, record: RecordPointer, ticket: Any) -> Buffer | None:
        size: cython.Py_ssize_t = self.size_for(record)
        sticky: cython.bint = partition < 0
        queue: PartitionQueue = self.queue_of(topic, partition)
        if sticky and topic.leave_full_node(queue, size, self.pool):
            queue = self.queue_of(topic, partition)
        return self.pool.allocate(size, queue.leader_id, ticket, sticky)

    @cython.cfunc
    @cython.exceptval(-1)
    def settle(self, buffer: Buffer | None, ticket: Any) -> cython.int:
        # The caller's hold ends (a batch that took the buffer has its own), and a grant that is not needed goes back.
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
        """``append`` for callers that are not compiled: its status, and a future that counts if that has APPENDED."""
        section: bytes = encode_headers(headers)
        record: RecordView = record_view(timestamp, key, value, section)
        future: RecordFuture = new_future()
        return self.append(topic, partition, view_of(record), future, callback, ticket, now), future

    @cython.cfunc
    @cython.exceptval(check=False)
    def size_for(self, record: RecordPointer) -> cython.Py_ssize_t:
        alone: cython.Py_ssize_t = record_size(
            record_body_size(0, 0, record.key_size, record.value_size, record.headers_size)
        )
        return max(self.batch_size, BATCH_HEADER + alone)

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
                self.closer.close_full(queue)
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
        return APPENDED | MADE_FULL | self.close_last(queue, batch)

    @cython.cfunc
    @cython.exceptval(check=False)
    def close_last(self, queue: PartitionQueue, batch: ProducerBatch) -> cython.int:
        # The thread that filled a batch compresses it, outside the lock; ``closing`` keeps the sender off until then.
        self.schedule.announce(queue)
        if batch.life != OPEN:
            return 0
        batch.close_for_appends()
        check_ahead(batch)
        return CLOSED_LAST if batch.compressed and queue.keep_to_close(batch) else 0

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
        """A new batch that holds the record: APPENDED | BEGUN.  The batch is a further holder of the buffer then."""
        queue: PartitionQueue = self.queue_of(topic, partition)
        ratio: cython.double = self.closer.ratio(topic.name)
        batch: ProducerBatch = new_batch(queue, buffer, buffer.size, now, self.codec_id, ratio, self.max_raw_size, 0)
        acquire(queue.lock)
        try:
            status: cython.int = self.start_locked(topic, partition < 0, batch, record, future, callback)
        finally:
            release(queue.lock)
        if status & CLOSED_LAST:
            self.closer.close_full(queue)
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
        # Another thread may have made a batch, or the switch that was held back may be due, meanwhile.
        status: cython.int = self.try_locked(topic, queue, sticky, record, future, callback)
        if not status & NEEDS_BATCH:
            return status
        # Known to flush and close from the moment it holds a record, and not before: they wait for all there are.
        if not self.incomplete_batches.admit(batch):
            return status & CLOSED_LAST
        try:
            batch.try_append(record, future, callback)
            queue.add(batch)
        except BaseException:  # no memory for the callback: a flush must not wait for what is in no queue
            self.incomplete_batches.discard(batch)
            raise
        cython.cast(Buffer, batch.chunk).retain()
        self.schedule.announce(queue)
        full: cython.bint = batch.is_full()
        if sticky:
            topic.partitioner.update(batch.estimated_size(), full)
        status = (status & CLOSED_LAST) | APPENDED | BEGUN
        if full:
            # One record as large as a batch: compressed here and not on the sender's thread.
            return status | MADE_FULL | self.close_last(queue, batch)
        return status | (MADE_FULL if len(queue.batches) > 1 else 0)

    @cython.cfunc
    def extend(self, topic: TopicState, partition: cython.int, record: RecordPointer) -> cython.void:
        """Gives the open batch a further chunk if one is free at once and nobody waits; else closes it."""
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
            self.closer.close_full(queue)

    # Flush, and the end

    @property
    def closed(self) -> bool:
        """True once ``close`` was called."""
        return self.incomplete_batches.closed

    @cython.ccall
    @cython.exceptval(check=False)
    def flushing(self) -> cython.bint:
        """True while somebody waits in flush(): linger does not count then."""
        return self.incomplete_batches.flushes > 0

    def begin_flush(self) -> list[ProducerBatch]:
        """Makes everything sendable; the batches that a flush has to wait for.  ``end_flush`` must follow."""
        return self.incomplete_batches.listed(1)

    def end_flush(self) -> None:
        """Ends what ``begin_flush`` began, however the wait went."""
        self.incomplete_batches.add_flushes(-1)

    @cython.ccall
    @cython.exceptval(-1)
    def deallocate(self, batch: ProducerBatch) -> cython.int:
        """A batch has its outcome: it lets go of its memory, which returns once no request needs it."""
        self.incomplete_batches.discard(batch)
        self.returning.give_back(batch)
        return 0

    def rebuild(self, now: float, gate: Any) -> None:
        """Makes the schedule whole again after an exception in the middle of a turn; sender thread."""
        queues = [queue for state in list(self.topics.values()) for queue in list(state.queues)]
        self.schedule.rebuild(queues, self.incomplete(), now, gate)

    def incomplete(self) -> list[ProducerBatch]:
        """Every batch without an outcome: open, waiting or in flight."""
        return self.incomplete_batches.listed(0)

    def take_waiting(self) -> list[ProducerBatch]:
        """Empties every queue (a forced close); the batches that were waiting.  Sender thread.

        Over all queues, not the schedule's lines: a queue gets its first batch before the schedule hears of it.
        """
        return self.taken(False)

    def take_unsent(self) -> list[ProducerBatch]:
        """As ``take_waiting``, but what has a sequence stays: it was sent once, and its outcome is not known."""
        return self.taken(True)

    @cython.cfunc
    def taken(self, unsent_only: cython.bint) -> list[Any]:
        taken: list[Any] = []
        queue: PartitionQueue
        state: TopicState
        for state in list(self.topics.values()):
            for queue in list(state.queues):
                queue.take_all(unsent_only, taken)
        return taken

    def has_incomplete(self) -> bool:
        """True while any batch has no outcome."""
        return len(self.incomplete_batches.batches) > 0

    def close(self) -> None:
        """Refuses further appends; what is in batches stays there."""
        self.incomplete_batches.close()
        self.pool.close()

    # Sealing: between a transaction's end and the beginning of the next

    @cython.cfunc
    @cython.exceptval(check=False)
    def refuses(self) -> cython.bint:
        return self.incomplete_batches.closed or self.incomplete_batches.sealed

    @cython.cfunc
    def refusal(self) -> Any:
        if self.incomplete_batches.closed or self.guard is None:
            return ProducerClosedError("Producer closed while send in progress")
        return self.guard.refusal()

    def seal(self) -> None:
        """Once this has returned, no append succeeds until ``unseal``; any thread, idempotent.

        Who waits for memory is woken, and gets ``guard.refusal()`` as everybody else does.
        """
        self.incomplete_batches.seal()
        self.schedule.look_at_all()
        self.pool.wake_waiters()

    def unseal(self) -> None:
        """Appends are taken again."""
        self.incomplete_batches.unseal()

    def __repr__(self) -> str:
        return (
            f"<RecordAccumulator: {len(self.topics)} topics, {len(self.incomplete_batches)} batches, "
            f"{self.pool.available()} of {self.pool.total} bytes free>"
        )
