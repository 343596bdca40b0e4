"""What the accumulator keeps for a topic: a queue of batches for each partition, and the sticky partition.

Lock order: the accumulator's lock, then one queue's, then the pool's; never two queues at once.
"""

from __future__ import annotations

import math
from typing import Any

import cython
from cython.cimports.forebay._accumulator.states import ABANDONED, CLOSING, FULL, IDLE, LEFT, NO_LINE
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.partitioner import BuiltInPartitioner
from forebay._accumulator.pool import BufferPool
from forebay._accumulator.states import PLACE_MOVES, PLACES, packed
from forebay._runtime.mutex import is_held
from forebay.errors import IllegalStateError
from forebay.model._gate import Gate, GatedQueue

INFINITY: cython.double = math.inf
MOVES = cython.declare(cython.ulonglong, packed(PLACE_MOVES))
LEFT_MS = cython.declare(cython.double, 1000.0)
"""How long the sender leaves a batch to a thread that has not begun to compress it; then it does so itself."""


@cython.final
@cython.cclass
class PartitionQueue(GatedQueue):
    """The batches of one partition, oldest first.  Appends go to ``last`` while it is open.

    ``place`` says where the schedule keeps it (``states.PLACE_MOVES``).  ``to_close`` has the full batches that the
    thread which filled them is to compress.  The sender keeps off them until that is done, or for a second
    (``left_since``).  ``expected`` is the size of the last batch's records, as a guess at the next.  topic.pxd says
    which lock or thread owns which field.
    """

    def __init__(self, state: TopicState, partition: cython.int) -> None:
        GatedQueue.__init__(self, state.name, partition)
        self.state = state
        self.batches: list[Any] = []
        self.last: ProducerBatch | None = None
        self.expected = 0
        self.place = IDLE
        self.to_close: list[Any] = []
        self.left_since = -1.0
        self.leader_id = -1
        self.leader_epoch = -1
        self.line = NO_LINE
        self.due = 0.0
        self.watched_at = self.parked_at = -1
        self.muted = False
        self.in_flight = 0
        self.sensors = None
        if not cython.compiled:
            self.lock = Mutex()

    @cython.ccall
    @cython.exceptval(-1)
    def move(self, place: cython.int) -> cython.int:
        """The only way to another place; its lock is held.

        Raises:
            IllegalStateError: there is no such move.
        """
        if not cython.compiled:
            assert is_held(self.lock), "a queue moves under its lock"
        if not (MOVES >> (8 * self.place + place)) & 1:
            raise IllegalStateError(f"{self!r} is {PLACES[self.place]} and cannot become {PLACES[place]}")
        self.place = place
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def add(self, batch: ProducerBatch) -> cython.int:
        self.batches.append(batch)
        self.last = batch
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def leave_to_filler(self, batch: ProducerBatch) -> cython.bint:
        """Leaves a full batch to the thread that filled it; False if memory lacks: then the sender closes it."""
        listed: cython.bint = False
        try:
            self.to_close.append(batch)
            listed = True
        except MemoryError:
            pass
        if listed:
            batch.become(LEFT)
        return listed

    @cython.cfunc
    @cython.exceptval(-1)
    def take_back(self, batch: ProducerBatch) -> cython.int:
        """A batch that is LEFT is the sender's again; its lock is held."""
        self.to_close.remove(batch)
        return batch.become(FULL)

    @cython.cfunc
    def pop_head(self) -> ProducerBatch:
        return self.pop_at(0)

    @cython.cfunc
    def pop_at(self, at: cython.Py_ssize_t) -> ProducerBatch:
        batch: ProducerBatch = self.batches.pop(at)
        batch.close_for_appends()
        self.expected = batch.records.raw_size
        if self.last is batch:
            self.last = None
        return batch

    @cython.ccall
    def insert(self, batch: ProducerBatch, gate: Gate | None) -> cython.void:
        """Puts a batch that is to be sent again back in order: by sequence, or by the first drain of each batch.

        Sender's thread.  It takes the lock only to insert, because no other thread takes from the head or the middle.
        """
        at: cython.Py_ssize_t = 0
        if gate is not None and batch.has_sequence():
            while at < len(self.batches) and not gate.comes_before(batch, self.batches[at]):
                at += 1
        else:
            # Behind those that were drained before it and came back too, ahead of those that never were.
            while at < len(self.batches) and was_drained_before(self.batches[at], batch):
                at += 1
        acquire(self.lock)
        try:
            self.batches.insert(at, batch)
        finally:
            release(self.lock)

    @cython.cfunc
    def take_all(self, unsent_only: cython.bint, taken: list[Any]) -> cython.void:
        """Moves the batches to ``taken``.  With ``unsent_only`` those that have a sequence stay."""
        kept: list[Any] = []
        batch: ProducerBatch
        acquire(self.lock)
        try:
            while len(self.batches) > 0:
                batch = self.pop_head()
                if unsent_only and batch.has_sequence():
                    kept.append(batch)
                else:
                    taken.append(batch)
            self.batches.extend(kept)
        finally:
            release(self.lock)

    def take_these(self, wanted: set[ProducerBatch]) -> list[ProducerBatch]:
        """Takes the ``wanted`` batches out, in order.  Sender's thread."""
        taken: list[Any] = []
        kept: list[Any] = []
        batch: ProducerBatch
        acquire(self.lock)
        try:
            for batch in self.batches:
                if batch in wanted:
                    batch.close_for_appends()
                    taken.append(batch)
                else:
                    kept.append(batch)
            if self.last in wanted:
                self.last = None
            old: list[Any] = self.batches  # kept until the lock is released
            self.batches = kept
        finally:
            release(self.lock)
        del old
        return taken

    @cython.ccall
    def has(self, batch: ProducerBatch) -> cython.bint:
        """Whether the batch waits here."""
        acquire(self.lock)
        try:
            return batch in self.batches
        finally:
            release(self.lock)

    @cython.ccall
    def abandon(self, batch: ProducerBatch) -> cython.bint:
        """Marks a batch with an outcome that another thread compresses; False if no thread does.

        That thread releases its memory then.  A batch that is LEFT is taken back: the thread may never come.
        """
        acquire(self.lock)
        try:
            if batch.life == LEFT:
                self.take_back(batch)
            if batch.life != CLOSING:
                return False
            batch.become(ABANDONED)
            return True
        finally:
            release(self.lock)

    @cython.cfunc
    @cython.exceptval(-2)
    def blocked_for(self, head: ProducerBatch, now: cython.double) -> cython.double:
        """Ms until the first batch may be drained, infinite if only an event can change that.  Its lock is held.

        The thread that was to compress a batch may have ended.  So a batch that is LEFT for long becomes FULL again.
        """
        if self.muted:
            return INFINITY
        if not head.is_being_closed():
            return 0
        if head.life == CLOSING:
            self.left_since = -1
            return INFINITY
        if self.left_since < 0:
            self.left_since = now
        left: cython.double = self.left_since + LEFT_MS - now
        if left <= 0:
            self.take_back(head)
            self.left_since = -1
        return max(left, 0)

    def __repr__(self) -> str:
        return (
            f"<PartitionQueue {self.topic}-{self.partition}: {len(self.batches)} batches, {self.in_flight} in flight, "
            f"leader {self.leader_id}, {PLACES[self.place]}{', muted' if self.muted else ''}>"
        )


@cython.cfunc
def was_drained_before(one: ProducerBatch, other: ProducerBatch) -> cython.bint:
    # The parts of a split batch have its number; their records' order decides.
    if one.drain_number == other.drain_number:
        return one.result.first < other.result.first
    return 0 < one.drain_number < other.drain_number


@cython.final
@cython.cclass
class TopicIncarnation:
    """A topic from its creation to its deletion.  If it is created again with the same name, it has other logs.

    Args:
        topic_id: its 16 bytes; None while they are not known.
        number: 0 for the first incarnation seen here.  Incarnations with different known ids have different numbers.
            The last two keep theirs, because a broker that is behind may still name the previous one.
    """

    def __init__(self, topic_id: bytes | None, number: cython.int = 0) -> None:
        self.topic_id = topic_id
        self.number = number


@cython.final
@cython.cclass
class TopicState:
    """One topic.  The lock of the sticky partition's queue guards the fields of ``partitioner``.

    ``queues`` and ``partition_count`` change under the accumulator's lock.  ``queues`` only grows: a topic that was
    deleted and created again with fewer partitions keeps them, and their batches expire.  The count never goes back to
    0, because threads that send divide by it.  ``missing`` says that the newest metadata does not know the topic; then
    a send waits.  ``incarnation`` is replaced under that lock and read without it; it is one word, so its number and
    its id belong together.  ``other`` is the previous incarnation, or the same.  ``infos``, the cluster's tuple that
    the queues' leaders are from, is replaced and read in the same way.  ``last_used``, the time of the last
    drain in monotonic ms, is owned by the sender's thread.
    """

    def __init__(self, name: str, partitioner: BuiltInPartitioner) -> None:
        self.name = name
        self.partitioner = partitioner
        self.queues: list[Any] = []
        self.partition_count = 0
        self.cluster = None
        self.infos: tuple[Any, ...] = ()
        self.version = -1
        self.incarnation = self.other = TopicIncarnation(None)
        self.missing = False
        self.last_used = 0.0
        self.loaded = False
        self.weighted = False
        self.sensors = None

    @cython.cfunc
    def queue(self, partition: cython.int) -> PartitionQueue:
        if partition < 0 or partition >= len(self.queues):
            raise self._no_queue(partition)
        return cython.cast(PartitionQueue, self.queues[partition])

    def _no_queue(self, partition: int) -> IllegalStateError:
        return IllegalStateError(f"Topic {self.name} has {len(self.queues)} partitions here; there is no {partition}")

    def in_use(self, since: cython.double) -> bool:
        """See ``RecordAccumulator.in_use``."""
        return self.last_used >= since or any(queue.batches for queue in self.queues)

    @cython.cfunc
    def apply(self, change: TopicChange) -> cython.void:
        """Takes over metadata of this topic; the accumulator's lock is held.

        If metadata does not know the topic, the last count stays, so that no record goes to a wrong partition; its
        leaders are unknown then.  Older metadata is used only if no newer one knew the topic, and only for the count.
        """
        stale: cython.bint = change.version <= self.version
        if stale and (self.partition_count > 0 or change.count == 0):
            return
        queue: PartitionQueue
        # Except those that another thread added since ``change`` was prepared.
        for queue in change.queues:
            if queue.partition == len(self.queues):
                self.queues.append(queue)
        if not stale:
            self._follow(change.incarnation)
            for partition, leader_id, leader_epoch in change.leaders:
                queue = self.queues[partition]
                queue.leader_id = leader_id
                queue.leader_epoch = leader_epoch
            self.missing = change.count == 0
            if self.missing:
                for queue in self.queues:
                    queue.leader_id = -1
            self.infos = change.infos
            self.version = change.version
        if change.count > 0:
            self._apply_to_partitioner(change.count, change.available)
            self.partition_count = change.count
        # A user's partitioner gets the last cluster that knew the topic.
        if change.count > 0 or self.partition_count == 0:
            self.cluster = change.cluster

    @cython.cfunc
    def _follow(self, newest: TopicIncarnation) -> cython.void:
        # An answer without an id says nothing: the topic is gone, or the broker is old.
        known: TopicIncarnation = self.incarnation
        if newest.topic_id is None or newest.topic_id == known.topic_id:
            return
        if newest.topic_id == self.other.topic_id:
            # One of the two comes from a broker that is behind.  With a new number, the log that has our batches would
            # count as another one, and batches that it has could be written again.
            self.incarnation, self.other = self.other, known
            return
        newest.number = 0 if known.topic_id is None else max(known.number, self.other.number) + 1
        self.incarnation, self.other = newest, known

    def _apply_to_partitioner(self, count: cython.int, available: tuple[int, ...]) -> None:
        sticky: cython.int = self.partitioner.peek()
        if sticky < 0:
            self.partitioner.set_partitions(count, available)
            self.partitioner.current()
            return
        while True:
            queue: PartitionQueue = self.queues[sticky]
            acquire(queue.lock)
            try:
                if not self.partitioner.is_changed(sticky):
                    self.partitioner.set_partitions(count, available)
                    return
            finally:
                release(queue.lock)
            sticky = self.partitioner.peek()

    @cython.cfunc
    def leave_full_node(self, queue: PartitionQueue, size: cython.Py_ssize_t, pool: BufferPool) -> cython.bint:
        """Changes the sticky partition from ``queue``'s to one whose node may hold ``size`` more bytes.

        False if it may stay, or if no node has room (buffer.memory.max.node.share).
        """
        if pool.owner_limit == 0 or not pool.exceeds_share(size, queue.leader_id):
            return False
        chosen: cython.int = self._with_room(size, pool)
        if chosen < 0:
            return False
        acquire(queue.lock)
        try:
            if not self.partitioner.is_changed(queue.partition):
                self.partitioner.move_to(chosen)
        finally:
            release(queue.lock)
        return True

    def _with_room(self, size: cython.Py_ssize_t, pool: BufferPool) -> int:
        available: tuple[int, ...] = self.partitioner.available
        if len(available) == 0:
            return -1
        full: set[int] = set()
        # From a random one on, so that not all threads go to the same one.
        first: cython.int = self.partitioner.random() % len(available)
        for at in range(len(available)):
            queue: PartitionQueue = self.queues[available[(first + at) % len(available)]]
            leader: cython.int = queue.leader_id
            if leader < 0 or leader in full:
                continue
            if not pool.exceeds_share(size, leader):
                return queue.partition
            full.add(leader)
        return -1

    def __repr__(self) -> str:
        return f"<TopicState {self.name}: {self.partition_count} partitions, sticky {self.partitioner.peek()}>"


@cython.final
@cython.cclass
class TopicChange:
    """What a cluster says of a topic, with the queues to be added.  It is made before ``apply`` takes the lock."""

    def __init__(
        self, cluster: Any, infos: tuple[Any, ...], available: tuple[int, ...], incarnation: TopicIncarnation
    ) -> None:
        self.cluster = cluster
        self.version = cluster.version
        self.infos = infos
        self.count = len(infos)
        self.available = available
        self.incarnation = incarnation
        self.leaders: list[tuple[int, int, int]] = []
        self.queues: list[Any] = []


@cython.cfunc
def change_of(state: TopicState, cluster: Any) -> TopicChange:
    """What ``cluster`` says of ``state``'s topic.  It takes no lock, because queues are only added.

    If the cluster has the tuple that the queues' leaders are from, they stay.  Each picture takes a tuple only from the
    one before it.  So no version between the state's and this one had other leaders, and none can be applied meanwhile.
    """
    infos: tuple[Any, ...] = cluster.partitions(state.name)
    change: TopicChange = TopicChange(
        cluster,
        infos,
        cluster.available_partitions(state.name),
        TopicIncarnation(cluster.topic_id(state.name)),
    )
    if infos is state.infos:
        return change
    # By the highest number, not by count, because a broker may leave partitions out.
    highest: cython.int = -1
    for info in infos:
        leader_id = -1 if info.leader is None else info.leader.id
        change.leaders.append((info.partition, leader_id, info.leader_epoch))
        highest = max(highest, info.partition)
    number: cython.int
    for number in range(len(state.queues), highest + 1):
        change.queues.append(PartitionQueue(state, number))
    return change
