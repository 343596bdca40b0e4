"""Which batches go out now: the sender thread's side of the accumulator.

Queues that hold batches stand in line at their leader.  A line is served from its front, and a queue that gave a batch
goes to the back: a drain that the size limit cut short goes on, next time, at the partition that did not fit.  A
partition that may not be drained now (muted, backing off, held back by the gate) is passed over; the Java client stops
serving the whole broker there.

A turn costs what there is to do, not what waits: ``ready`` looks at the queues that are *watched*.  One whose only
batch lingers is *parked* until its time comes, a second batch follows, or whoever fills the batch says so (``unpark``).
It keeps its place in its line, since a request takes along what lingers, as in Java.

All methods run on the sender's thread but ``activate``, ``unpark`` and ``look_at_all``.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.forebay._accumulator.batch import ProducerBatch
    from cython.cimports.forebay._accumulator.loads import PartitionLoads
    from cython.cimports.forebay._accumulator.parking import ParkedQueues
    from cython.cimports.forebay._accumulator.ready_nodes import ReadyNodes, no_nodes
    from cython.cimports.forebay._accumulator.topic import PartitionQueue, TopicIncarnation
    from cython.cimports.forebay._codec._lists import put_item
    from cython.cimports.forebay._gate import Gate
    from cython.cimports.forebay._mutex import acquire, release
else:
    from forebay._accumulator.batch import ProducerBatch
    from forebay._accumulator.loads import PartitionLoads
    from forebay._accumulator.parking import ParkedQueues
    from forebay._accumulator.ready_nodes import ReadyNodes, no_nodes
    from forebay._accumulator.topic import PartitionQueue, TopicIncarnation
    from forebay._codec._lists import put_item
    from forebay._gate import Gate
    from forebay._mutex import Mutex, acquire, release

NO_LEADER = cython.declare(cython.int, -1)
INFINITY: cython.double = math.inf
# Among other waits.
EMPTY = cython.declare(cython.double, -1.0)


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
        self.looked_at = -INFINITY  # the time of the last `ready`
        self.delivery_timeout_ms = delivery_timeout_ms
        self.backoff = backoff
        self.adaptive = adaptive
        self.loads = PartitionLoads(availability_timeout_ms)
        self.activated: list[Any] = []
        self.nodes: dict[int, deque[Any]] = {}
        self.next_expiry = INFINITY
        self.drains = 0
        self.watched: list[Any] = []
        self.parked = ParkedQueues()
        self.all_due = self.torn = self.sending_all = self.dropped = self.more = self.cut_short = False
        self.behind_check = INFINITY
        if not cython.compiled:
            self.lock = Mutex()

    @cython.ccall
    @cython.exceptval(-1)
    def activate(self, queue: PartitionQueue) -> cython.int:
        """A queue got its first batch, or what it has is not to linger any more; any thread."""
        acquire(self.lock)
        try:
            put_item(self.activated, queue)
        except MemoryError:
            self.torn = True  # the record is in its batch: its send() must not raise
        finally:
            release(self.lock)
        return 0

    @cython.cfunc
    def unpark(self, queue: PartitionQueue) -> cython.void:
        """Something happened to a queue that may be parked; any thread, the queue's lock held."""
        if queue.parked:
            queue.parked = False
            self.activate(queue)

    def look_at_all(self) -> None:
        """Nothing lingers in the next ``ready``: batches were closed without a word to their queues; any thread."""
        self.all_due = True

    @cython.cfunc
    @cython.exceptval(-1)
    def watch(self, queue: PartitionQueue) -> cython.int:
        if not queue.watched:
            queue.watched = True
            put_item(self.watched, queue)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def collect(self) -> cython.int:
        if len(self.activated) == 0:
            return 0
        none: list[Any] = []
        acquire(self.lock)
        try:
            fresh: list[Any] = self.activated
            self.activated = none
        finally:
            release(self.lock)
        queue: PartitionQueue
        for queue in fresh:
            if not queue.lined:
                self.join_line(queue)
            self.watch(queue)
            acquire(queue.lock)
            try:
                if len(queue.batches) > 0:
                    self._expect_expiry(queue.batches[0])
            finally:
                release(queue.lock)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def join_line(self, queue: PartitionQueue) -> cython.int:
        queue.lined = True
        queue.line = queue.leader_id
        self._line(queue.line).append(queue)
        return 0

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
                self.join_line(queue)
                self.move_memory(queue)
                self.wake(queue)

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
        self.looked_at = now
        self.sending_all = send_all
        self.behind_check = INFINITY
        everything: cython.bint = send_all
        if self.all_due:
            self.all_due = False  # before the look, so that a word that comes meanwhile counts for the next one
            everything = True
        self.wake_parked(INFINITY if everything else now)
        found: ReadyNodes = no_nodes()
        queue: PartitionQueue
        kept: list[Any] = []
        for queue in self.watched:
            if self.look_at(queue, now, found):
                kept.append(queue)
            else:
                queue.watched = False
        self.watched = kept
        found.next_check = min(found.next_check, self.parked.next_due() - now)
        if self.adaptive:
            self.loads.weigh(now)
        return found

    @cython.cfunc
    @cython.exceptval(-1)
    def look_at(self, queue: PartitionQueue, now: cython.double, found: ReadyNodes) -> cython.bint:
        # True while it is to be watched: until it is empty, or parked.
        if queue.line == NO_LEADER and len(queue.batches) > 0:
            found.note_leaderless(queue.topic)
            return True
        wait: cython.double = self.wait_of(queue, now, True)
        if wait == EMPTY or queue.parked:
            return False
        if wait > 0:
            found.next_check = min(found.next_check, wait)
        elif queue.line not in found.nodes:
            found.nodes.append(queue.line)
        return True

    @cython.cfunc
    @cython.exceptval(-2)
    def wait_of(self, queue: PartitionQueue, now: cython.double, park: cython.bint) -> cython.double:
        # Ms until its first batch can go, infinite where an event decides, EMPTY without one.  ``park``: in the same
        # moment, so that nobody can fill the batch in between without a word.
        acquire(queue.lock)
        try:
            count: cython.Py_ssize_t = len(queue.batches)
            if count == 0:
                if park:
                    queue.scheduled = False
                return EMPTY
            # Also of a partition that may not be drained now: that is when its queue grows.
            if count > 1 and self.adaptive:
                self.loads.note(queue.state)
            head: ProducerBatch = queue.batches[0]
            kept: cython.double = queue.kept_back(head, now)
            if kept > 0:
                return kept
            head.update_leader_epoch(queue.leader_epoch)
            if self.backs_off(head, now):
                return head.retry_at - now
            if count > 1 or self.sending_all or head.attempts > 0 or head.is_full():
                return 0
            due: cython.double = head.created + self.linger_ms
            if due <= now:
                return 0
            if park:
                queue.parked = True
                queue.due = due
        finally:
            release(queue.lock)
        if park and not queue.in_heap:
            self.parked.put(queue)
        return due - now

    @cython.cfunc
    @cython.exceptval(-1)
    def wake(self, queue: PartitionQueue) -> cython.int:
        acquire(queue.lock)
        queue.parked = False
        release(queue.lock)
        return self.watch(queue)

    @cython.cfunc
    @cython.exceptval(-1)
    def wake_parked(self, now: cython.double) -> cython.int:
        queue: PartitionQueue | None = self.parked.pop(now)
        while queue is not None:
            self.wake(queue)
            queue = self.parked.pop(now)
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def backs_off(self, batch: ProducerBatch, now: cython.double) -> cython.bint:
        return batch.attempts > 0 and now < batch.retry_at and not batch.leader_changed_for_retry()

    # Draining

    @cython.ccall
    def drain(
        self, node_id: cython.int, max_size: cython.Py_ssize_t, now: cython.double, gate: Gate | None
    ) -> list[Any]:
        """At most one batch a partition for one request to ``node_id``, together at most ``max_size`` bytes.

        A single batch that is larger goes alone.  ``gate`` (``may_drain``, ``stamp``), if there is one, decides
        whether a partition may be drained and stamps producer id and sequence; it does so once for each batch.
        ``more`` says afterwards whether the node has something that could follow at once, ``cut_short`` whether that is
        for want of room in this request, and ``behind_check`` in how many ms from the last ``ready`` on something else
        of all drained partitions can go.
        """
        batches: list[Any] = []
        self.more = self.cut_short = False
        line = self.nodes.get(node_id)
        if line is None:
            return batches
        size: cython.Py_ssize_t = 0
        queue: PartitionQueue
        batch: ProducerBatch | None
        passed_over: list[Any] = []
        for _ in range(len(line)):
            queue = line[0]
            room: cython.Py_ssize_t = -1 if size == 0 else max(max_size - size, 0)
            batch = self.take(queue, room, now, gate)
            if batch is not None:
                size += batch.estimated_size()
                batches.append(batch)
                if len(line) > 1:
                    line.rotate(-1)
                self.watch(queue)
                self.look_behind(queue, now)
            elif self.dropped:
                line.popleft()
                queue.lined = False
            elif self._fits_not(queue, room):
                self.more = self.cut_short = True
                break
            else:
                passed_over.append(line.popleft())
        if len(passed_over) > 0:
            line.extendleft(reversed(passed_over))
        return batches

    @cython.cfunc
    @cython.exceptval(-1)
    def look_behind(self, queue: PartitionQueue, now: cython.double) -> cython.int:
        # The batch behind the one that was taken: it may be due at once, or before anything that ``ready`` saw.
        if len(queue.batches) == 0:
            return 0
        wait: cython.double = self.wait_of(queue, now, False)
        if wait == 0:
            self.more = True
        elif wait > 0:
            self.behind_check = min(self.behind_check, wait)
        return 0

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
        self, queue: PartitionQueue, room: cython.Py_ssize_t, now: cython.double, gate: Gate | None
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
                queue.parked = False
                self.dropped = True
                return None
            batch = queue.batches[0]
            if batch.closing or self.backs_off(batch, now) or (room >= 0 and batch.estimated_size() > room):
                return None
        finally:
            release(queue.lock)
        # One look, before the gate judges it and for as long as the request lives.
        incarnation: TopicIncarnation = queue.state.incarnation
        batch.aim_at(incarnation.number, incarnation.topic_id, queue.leader_epoch)
        # Only this thread takes from the head, so it is still there after the gate, which may run longer.
        if gate is not None and not gate.may_drain(queue, batch):
            return None
        acquire(queue.lock)
        try:
            queue.pop_head()
            queue.parked = False
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
    def reenqueue(self, batch: ProducerBatch, now: cython.double, gate: Gate | None) -> cython.void:
        """Puts a batch back for another attempt after its backoff, which is drawn here, once."""
        batch.attempts += 1
        batch.retry_at = now + self.backoff.delay(batch.attempts - 1)
        self.put_back(batch, gate)

    @cython.ccall
    def put_back(self, batch: ProducerBatch, gate: Gate | None) -> cython.void:
        """Puts a batch where it belongs in its queue, and the queue where it is looked at."""
        queue: PartitionQueue = batch.queue
        if batch.move_to(queue.leader_id):
            batch.account.settle()
        queue.insert(batch, gate)
        self._expect_expiry(batch)
        acquire(queue.lock)
        queue.scheduled = True
        queue.parked = False
        release(queue.lock)
        if not queue.lined:
            queue.lined = True
            queue.line = queue.leader_id
            self._line(queue.line).appendleft(queue)
        self.watch(queue)

    @cython.ccall
    def expired(self, now: cython.double) -> list[Any]:
        """Takes out every waiting batch older than the delivery timeout, muted partitions included."""
        gone: list[Any] = []
        queue: PartitionQueue
        self.collect()
        if now < self.next_expiry:
            return gone
        self.next_expiry = INFINITY
        for line in self.nodes.values():
            for queue in line:
                self.expire(queue, now, gone)
        return gone

    @cython.cfunc
    def expire(self, queue: PartitionQueue, now: cython.double, gone: list[Any]) -> cython.void:
        # Those with sequences stand as they are asked for, not by age.  Empty, it is not scheduled any more: only one
        # that is activated makes its first batch's expiry known, and that may come from a callback of those that go.
        batch: ProducerBatch
        at: cython.Py_ssize_t = 0
        acquire(queue.lock)
        try:
            while at < len(queue.batches):
                batch = queue.batches[at]
                if not batch.closing and batch.reached_delivery_timeout(self.delivery_timeout_ms, now):
                    gone.append(queue.pop_at(at))
                    continue
                self._expect_expiry(batch)
                at += 1
                if not batch.has_sequence():
                    break
            if at == 0:
                queue.scheduled = queue.parked = False
        finally:
            release(queue.lock)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _expect_expiry(self, batch: ProducerBatch) -> cython.void:
        self.next_expiry = min(self.next_expiry, batch.created + self.delivery_timeout_ms)

    @cython.ccall
    @cython.exceptval(check=False)
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

    def __repr__(self) -> str:
        lines = ", ".join(f"{node_id}: {len(line)}" for node_id, line in self.nodes.items())
        return f"<BatchSchedule: queues waiting by leader {{{lines}}}>"
