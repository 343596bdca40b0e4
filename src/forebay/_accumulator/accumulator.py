"""RecordAccumulator: where records wait in batches until the sender takes them.

It holds the parts together.  ``appender`` (application threads) puts records into batches, ``schedule`` and ``drain``
(sender's thread) take the batches out, ``closer`` compresses, and ``pool`` bounds the memory.  Its own are the topics,
flush, and the end.  Lock order: this lock, one queue's, then one of ``incomplete_batches``, the pool and the schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cython
from cython.cimports.forebay._accumulator.topic import change_of
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release

from forebay._accumulator.appender import BatchAppender
from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.closing import BatchCloser
from forebay._accumulator.drain import BatchDrain
from forebay._accumulator.incomplete import IncompleteBatches
from forebay._accumulator.pool import BufferPool
from forebay._accumulator.schedule import BatchSchedule
from forebay._accumulator.topic import PartitionQueue, TopicChange, TopicState
from forebay._runtime.clock import Clock


@cython.final
@cython.cclass
class RecordAccumulator:
    """Batches of all topics.

    Args:
        pool: the memory they may take.
        schedule: told of every batch; what the sender's thread sees.
        batch_size: bytes of header and records after which a batch is full (``batch.size``, at least 1).
        compressor: of ``compression.type``; None for none.
        estimator: the compression ratios of this producer's topics; None without compression.
        make_partitioner: a BuiltInPartitioner for a topic's name.
        max_raw_size: as BatchAppender's.
        clock: read only while threads lack memory, see ``BufferPool.defer``.
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
        clock: Clock,
    ) -> None:
        self.pool = pool
        self.schedule = schedule
        self.drain = BatchDrain(schedule)
        self.make_partitioner = make_partitioner
        self.closer = BatchCloser(compressor, estimator)
        self.topics: dict[str, TopicState] = {}
        self.incomplete_batches = IncompleteBatches()
        self.clock = clock
        self.appender = BatchAppender(pool, schedule, self.closer, self.incomplete_batches, batch_size, max_raw_size)
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
        """Brings one topic to what ``cluster`` says.  Any thread."""
        state: TopicState = self.topic(name)
        change: TopicChange = change_of(state, cluster)
        acquire(self.lock)
        try:
            state.apply(change)
        finally:
            release(self.lock)
        return state

    def refresh_all(self, cluster: Any) -> None:
        """Brings every topic in use to what ``cluster`` says, and batches to their new leaders.  Sender's thread."""
        for name in list(self.topics):
            self.refresh(name, cluster)
        self.schedule.follow_leaders()
        if self.pool.owner_limit > 0:
            # Waiters may wait for the share of a node that no longer leads their partition.
            self.pool.wake_waiters()

    def in_use(self, name: str, since: float) -> bool:
        """Whether the topic has batches, or had one drained at ``since`` (monotonic ms) or later.  Sender's thread.

        Only a new batch tells the metadata that its topic is wanted, and a batch may stay open for longer than
        metadata.max.idle.ms.
        """
        state: TopicState | None = self.topics.get(name)
        return state is not None and state.in_use(since)

    # Flush, and the end

    @property
    def closed(self) -> bool:
        """True once ``close`` was called."""
        return self.incomplete_batches.closed

    @cython.ccall
    @cython.exceptval(check=False)
    def flushing(self) -> cython.bint:
        """True while a thread waits in flush(); then no batch lingers."""
        return self.incomplete_batches.flushes > 0

    def begin_flush(self) -> list[ProducerBatch]:
        """Ends all lingering; the batches that a flush has to wait for.  ``end_flush`` must follow."""
        return self.incomplete_batches.listed(1)

    def end_flush(self) -> None:
        """Ends a flush, however its wait ended."""
        self.incomplete_batches.add_flushes(-1)

    @cython.ccall
    @cython.exceptval(-1)
    def deallocate(self, batch: ProducerBatch) -> cython.int:
        """A batch has its outcome: it lets go of its memory, which returns once no request needs it.

        Sender's thread only.
        """
        watch = self.closer.watch  # read once: the recorder's thread takes it away
        if watch is not None:
            watch.ended(batch, batch.final_state)
        self.incomplete_batches.discard(batch)
        queue: PartitionQueue = batch.queue
        if queue.abandon(batch):
            return 0  # the thread that compresses it releases it
        deferred: cython.bint = self.pool.defer()
        batch.release()
        if deferred:
            self.pool.serve_deferred(self.clock.now(), False)
        return 0

    def rebuild(self, now: float, gate: Any) -> None:
        """Derives the schedule anew after an exception in the middle of a turn.  Sender's thread."""
        queues = [queue for state in list(self.topics.values()) for queue in list(state.queues)]
        self.schedule.rebuild(queues, self.incomplete(), now, gate)

    def incomplete(self) -> list[ProducerBatch]:
        """Every batch without an outcome: open, waiting or in flight."""
        return self.incomplete_batches.listed(0)

    def take_waiting(self) -> list[ProducerBatch]:
        """Empties every queue (a forced close); the batches that were waiting.  Sender's thread.

        It visits all queues, not only the schedule's lines: a queue gets its first batch before it is announced.
        """
        return self.taken(False)

    def take_unsent(self) -> list[ProducerBatch]:
        """As ``take_waiting``, but batches with a sequence stay: they were sent, and their outcome is not known."""
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

    def unfinished_records(self) -> int:
        """Records in batches without an outcome."""
        return sum([batch.record_count for batch in self.incomplete()])

    def close(self) -> None:
        """Refuses further appends; records in batches stay there."""
        self.incomplete_batches.close()
        self.pool.close()

    # Sealing: between the end of a transaction and the beginning of the next

    def seal(self) -> None:
        """Once this has returned, no append succeeds until ``unseal``.  Any thread, idempotent.

        Threads that wait for memory are woken and get ``appender.guard.refusal()``, as all that append do.
        """
        self.incomplete_batches.seal()
        self.schedule.make_all_due()
        self.pool.wake_waiters()

    def unseal(self) -> None:
        """Appends are accepted again."""
        self.incomplete_batches.unseal()

    def __repr__(self) -> str:
        return (
            f"<RecordAccumulator: {len(self.topics)} topics, {len(self.incomplete_batches)} batches, "
            f"{self.pool.available()} of {self.pool.total} bytes free>"
        )
