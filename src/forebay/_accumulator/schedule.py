"""Which batches go out now: the sender thread's side of the accumulator.

Queues that hold batches stand in line at their leader, so that a turn looks at what waits and not at what exists.
A line is served from its front, and a queue that gave a batch goes to the back: a drain that the size limit cut
short goes on, next time, at the partition that did not fit.  A partition that may not be drained now (muted,
backing off, held back by the gate) is passed over; the Java client stops serving the whole broker there.

All methods run on the sender's thread but ``activate``.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.forebay._accumulator.batch import ProducerBatch
    from cython.cimports.forebay._accumulator.topic import PartitionQueue, TopicState
    from cython.cimports.forebay._mutex import acquire, release
else:
    import threading

    from forebay._accumulator.batch import ProducerBatch
    from forebay._accumulator.topic import PartitionQueue, TopicState
    from forebay._mutex import acquire, release

NO_LEADER = cython.declare(cython.int, -1)
INFINITY: cython.double = math.inf


@cython.final
@cython.cclass
class ReadyNodes:
    """What ``ready`` found.

    nodes: ids of brokers that something can be sent to now.
    next_check: ms until a batch that waits now can go; infinite if none does.
    unknown_leader_topics: topics with batches whose partition has no leader.
    """

    def __init__(self) -> None:
        self.nodes: list[int] = []
        self.next_check = INFINITY
        self.unknown_leader_topics: set[str] = set()


@cython.final
@cython.cclass
class BatchSchedule:
    """The lines of waiting queues, by leader.

    Args:
        linger_ms: how long a batch that is not full waits for company (``linger.ms``).
        delivery_timeout_ms: how old a batch may become (``delivery.timeout.ms``).
        backoff: delays between attempts (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        adaptive: weigh partitions by the length of their queues (``partitioner.adaptive.partitioning.enable``).
        availability_timeout_ms: leave out partitions of brokers that take nothing for so long
            (``partitioner.availability.timeout.ms``); 0 for never.
    """

    def __init__(
        self,
        *,
        linger_ms: cython.double,
        delivery_timeout_ms: cython.double,
        backoff: Any,
        adaptive: cython.bint = False,
        availability_timeout_ms: cython.double = 0,
    ) -> None:
        self.linger_ms = linger_ms
        self.delivery_timeout_ms = delivery_timeout_ms
        self.backoff = backoff
        self.adaptive = adaptive
        self.availability_timeout_ms = availability_timeout_ms
        self.activated: list[Any] = []
        self.nodes: dict[int, deque[Any]] = {}
        self.next_expiry = INFINITY
        self.drains = 0
        self.latency: dict[int, list[float]] = {}
        self.loaded_topics: set[Any] = set()
        self.dropped = False
        if not cython.compiled:
            self.lock = threading.Lock()

    @cython.ccall
    def activate(self, queue: PartitionQueue) -> cython.void:
        """A queue got its first batch; any thread."""
        acquire(self.lock)
        try:
            self.activated.append(queue)
        finally:
            release(self.lock)

    @cython.cfunc
    def collect(self) -> cython.void:
        if len(self.activated) == 0:
            return
        none: list[Any] = []
        acquire(self.lock)
        try:
            fresh: list[Any] = self.activated
            self.activated = none
        finally:
            release(self.lock)
        queue: PartitionQueue
        for queue in fresh:
            self._line(queue.leader_id).append(queue)
            acquire(queue.lock)
            try:
                if len(queue.batches) > 0:
                    self._expect_expiry(queue.batches[0])
            finally:
                release(queue.lock)

    def _line(self, node_id: int) -> deque[PartitionQueue]:
        line = self.nodes.get(node_id)
        if line is None:
            line = self.nodes[node_id] = deque()
        return line

    @cython.ccall
    def follow_leaders(self) -> cython.void:
        """Moves queues whose leader changed to the line of the new one."""
        self.collect()
        queue: PartitionQueue
        for node_id, line in list(self.nodes.items()):
            moved: list[Any] = [queue for queue in line if queue.leader_id != node_id]
            if len(moved) == 0:
                continue
            self.nodes[node_id] = deque([queue for queue in line if queue.leader_id == node_id])
            for queue in moved:
                self._line(queue.leader_id).append(queue)
                self.move_memory(queue)

    @cython.cfunc
    def move_memory(self, queue: PartitionQueue) -> cython.void:
        # What waits for the new leader is memory of its share; what is in flight stays with the node it went to.
        batch: ProducerBatch
        moved: ProducerBatch | None = None
        acquire(queue.lock)
        try:
            for batch in queue.batches:
                if batch.move_to(queue.leader_id):
                    moved = batch
        finally:
            release(queue.lock)
        if moved is not None:
            moved.account.settle()

    # Which nodes are ready

    @cython.ccall
    def ready(self, now: cython.double, send_all: cython.bint) -> ReadyNodes:
        """The nodes that have a batch which should go now, and when to look again.

        Args:
            send_all: linger does not count (flush, close, a transaction that ends, memory exhausted with nothing
                else to send).
        """
        self.collect()
        found: ReadyNodes = ReadyNodes()
        queue: PartitionQueue
        ready: cython.bint
        for node_id, line in self.nodes.items():
            ready = False
            dropped: list[Any] = []
            for queue in line:
                if len(queue.batches) == 0 and self.drop_if_empty(queue):
                    dropped.append(queue)
                elif node_id == NO_LEADER:
                    found.unknown_leader_topics.add(queue.topic)
                elif self.look_at(queue, now, send_all, found):
                    ready = True
            if ready:
                found.nodes.append(node_id)
            if len(dropped) > 0:
                self._shorten(node_id, dropped)
        if self.adaptive:
            self._weigh(now)
        return found

    def _shorten(self, node_id: int, dropped: list[PartitionQueue]) -> None:
        gone = set(dropped)
        self.nodes[node_id] = deque([queue for queue in self.nodes[node_id] if queue not in gone])

    @cython.cfunc
    def look_at(
        self, queue: PartitionQueue, now: cython.double, send_all: cython.bint, found: ReadyNodes
    ) -> cython.bint:
        acquire(queue.lock)
        try:
            count: cython.Py_ssize_t = len(queue.batches)
            if count == 0:
                return False
            # Also of a partition that may not be drained now: that is when its queue grows.
            if count > 1 and self.adaptive:
                queue.state.loaded = True
                self.loaded_topics.add(queue.state)
            head: ProducerBatch = queue.batches[0]
            if queue.muted or head.closing:
                return False
            head.update_leader_epoch(queue.leader_epoch)
            wait: cython.double = 0.0
            if self.backs_off(head, now):
                wait = head.retry_at - now
            elif not (count > 1 or send_all or head.attempts > 0 or head.is_full()):
                wait = head.created + self.linger_ms - now
        finally:
            release(queue.lock)
        if wait <= 0:
            return True
        if wait < found.next_check:
            found.next_check = wait
        return False

    @cython.cfunc
    def drop_if_empty(self, queue: PartitionQueue) -> cython.bint:
        acquire(queue.lock)
        try:
            if len(queue.batches) > 0:
                return False
            queue.scheduled = False
            return True
        finally:
            release(queue.lock)

    @cython.cfunc
    def backs_off(self, batch: ProducerBatch, now: cython.double) -> cython.bint:
        return batch.attempts > 0 and now < batch.retry_at and not batch.leader_changed_for_retry()

    # Draining

    @cython.ccall
    def drain(self, node_id: cython.int, max_size: cython.Py_ssize_t, now: cython.double, gate: Any) -> list[Any]:
        """At most one batch a partition for one request to ``node_id``, together at most ``max_size`` bytes.

        A single batch that is larger goes alone.  ``gate`` (``may_drain``, ``stamp``), if there is one, decides
        whether a partition may be drained and stamps producer id and sequence; it does so once for each batch.
        """
        batches: list[Any] = []
        line = self.nodes.get(node_id)
        if line is None:
            return batches
        size: cython.Py_ssize_t = 0
        queue: PartitionQueue
        batch: ProducerBatch | None
        passed_over: list[Any] = []
        for _ in range(len(line)):
            queue = line.popleft()
            room: cython.Py_ssize_t = -1 if size == 0 else max(max_size - size, 0)
            batch = self.take(queue, room, now, gate)
            if batch is not None:
                size += batch.estimated_size()
                batches.append(batch)
            elif self.dropped:
                continue
            elif self._fits_not(queue, room):
                line.appendleft(queue)
                break
            if batch is None:
                passed_over.append(queue)
            else:
                line.append(queue)
        line.extendleft(reversed(passed_over))
        return batches

    def _fits_not(self, queue: PartitionQueue, room: cython.Py_ssize_t) -> bool:
        if room < 0 or queue.muted:
            return False
        acquire(queue.lock)
        try:
            if len(queue.batches) == 0:
                return False
            head: ProducerBatch = queue.batches[0]
            return not head.closing and head.estimated_size() > room
        finally:
            release(queue.lock)

    @cython.cfunc
    def take(
        self, queue: PartitionQueue, room: cython.Py_ssize_t, now: cython.double, gate: Any
    ) -> ProducerBatch | None:
        # ``dropped`` tells the caller that the queue is empty and left the line; from that moment an append may put
        # it into ``activated``, so asking ``scheduled`` later would be a race.
        self.dropped = False
        if queue.muted:
            return None
        batch: ProducerBatch
        acquire(queue.lock)
        try:
            if len(queue.batches) == 0:
                queue.scheduled = False
                self.dropped = True
                return None
            batch = queue.batches[0]
            if batch.closing or self.backs_off(batch, now) or (room >= 0 and batch.estimated_size() > room):
                return None
        finally:
            release(queue.lock)
        batch.update_leader_epoch(queue.leader_epoch)
        # Only this thread takes from the head, so it is still there after the gate, which may run longer.
        if gate is not None and not gate.may_drain(queue, batch):
            return None
        acquire(queue.lock)
        try:
            queue.pop_head()
        finally:
            release(queue.lock)
        if gate is not None:
            gate.stamp(queue, batch)
        batch.drained = now
        queue.state.last_used = now
        if batch.drain_number == 0:
            self.drains += 1
            batch.drain_number = self.drains
        return batch

    # Retry and expiry

    @cython.ccall
    def reenqueue(self, batch: ProducerBatch, now: cython.double, gate: Any) -> cython.void:
        """Puts a batch back for another attempt after its backoff, which is drawn here, once."""
        batch.attempts += 1
        batch.retry_at = now + self.backoff.delay(batch.attempts - 1)
        self.put_back(batch, gate)

    @cython.ccall
    def put_back(self, batch: ProducerBatch, gate: Any) -> cython.void:
        """Puts a batch where it belongs in its queue, and the queue where it is looked at."""
        queue: PartitionQueue = batch.queue
        if batch.move_to(queue.leader_id):
            batch.account.settle()
        queue.insert(batch, gate)
        self._expect_expiry(batch)
        activate: cython.bint = False
        acquire(queue.lock)
        try:
            if not queue.scheduled:
                queue.scheduled = True
                activate = True
        finally:
            release(queue.lock)
        if activate:
            self._line(queue.leader_id).appendleft(queue)

    @cython.ccall
    def expired(self, now: cython.double) -> list[Any]:
        """Takes out every waiting batch older than the delivery timeout, muted partitions included."""
        gone: list[Any] = []
        self.collect()
        if now < self.next_expiry:
            return gone
        self.next_expiry = INFINITY
        for node_id, line in self.nodes.items():
            dropped: list[Any] = [queue for queue in line if self.expire(queue, now, gone)]
            if len(dropped) > 0:
                self._shorten(node_id, dropped)
        return gone

    @cython.cfunc
    def expire(self, queue: PartitionQueue, now: cython.double, gone: list[Any]) -> cython.bint:
        # True if it is empty.  It leaves the line at once then: only a queue that comes into a line makes its first
        # batch's expiry known, and the next one may come from a callback of those that go.
        batch: ProducerBatch
        acquire(queue.lock)
        try:
            while len(queue.batches) > 0:
                batch = queue.batches[0]
                if batch.closing or not batch.reached_delivery_timeout(self.delivery_timeout_ms, now):
                    self._expect_expiry(batch)
                    return False
                gone.append(queue.pop_head())
            queue.scheduled = False
            return True
        finally:
            release(queue.lock)

    def _expect_expiry(self, batch: ProducerBatch) -> None:
        self.next_expiry = min(self.next_expiry, batch.created + self.delivery_timeout_ms)

    @cython.ccall
    def next_expiry_at(self) -> cython.double:
        """When, in monotonic ms, the next waiting batch may expire; infinite if none waits."""
        return self.next_expiry

    @cython.ccall
    def has_undrained(self) -> cython.bint:
        """True while any queue holds a batch."""
        self.collect()
        queue: PartitionQueue
        for line in self.nodes.values():
            for queue in line:
                if len(queue.batches) > 0:
                    return True
        return False

    # Loads of partitions and brokers (KIP-794)

    def update_node_latency(self, node_id: int, now: float, can_drain: bool) -> None:
        """Notes that a node had data, and whether it could take it; used if an availability timeout is set."""
        times = self.latency.setdefault(node_id, [now, now])
        times[0] = now
        if can_drain:
            times[1] = now

    def _is_available(self, node_id: int) -> bool:
        if node_id < 0:
            return False
        times = self.latency.get(node_id)
        return times is None or times[0] - times[1] <= self.availability_timeout_ms

    def _weigh(self, now: float) -> None:
        # Topics whose queues have grown past one batch since the last look, and those weighted then.
        topic: TopicState
        for topic in list(self.loaded_topics):
            if not topic.loaded and not topic.weighted:
                self.loaded_topics.discard(topic)
                continue
            sizes = []
            partitions = []
            queue: PartitionQueue
            for queue in topic.queues[: topic.partition_count]:
                if queue.leader_id >= 0 and (self.availability_timeout_ms <= 0 or self._is_available(queue.leader_id)):
                    sizes.append(len(queue.batches))
                    partitions.append(queue.partition)
            loads = topic.partitioner.loads(sizes, partitions) if topic.loaded else ((), ())
            sticky: PartitionQueue = topic.queue(topic.partitioner.peek())
            acquire(sticky.lock)
            try:
                topic.partitioner.set_loads(loads)
            finally:
                release(sticky.lock)
            topic.weighted = topic.loaded
            topic.loaded = False

    def __repr__(self) -> str:
        lines = ", ".join(f"{node_id}: {len(line)}" for node_id, line in self.nodes.items())
        return f"<BatchSchedule: queues waiting by leader {{{lines}}}>"
