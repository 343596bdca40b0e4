"""BatchSchedule: which batches go out now, the accumulator as the sender's thread sees it.

Queues that hold batches are in the line of their leader, and ``drain`` takes batches from there.  ``ready`` checks only
the queues that are WATCHED, so a turn costs as much as there is to do, not as much as waits.  A queue whose only batch
lingers is PARKED until its time comes, or until the batch is full (``announce``).  It stays in its line meanwhile,
because a request takes along batches that linger, as in Java.  ``states.PLACE_MOVES`` has the moves; the containers
follow them.  All methods run on the sender's thread, except ``announce`` and ``make_all_due``.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import cython
from cython.cimports.forebay._accumulator.states import ANNOUNCED, IDLE, NO_LEADER, NO_LINE, PARKED, WATCHED
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.lingering import ParkedQueues
from forebay._accumulator.loads import PartitionLoads
from forebay._accumulator.topic import PartitionQueue
from forebay._runtime.owner import check_owner
from forebay.model._gate import Gate

INFINITY: cython.double = math.inf


@cython.final
@cython.freelist(8)
@cython.cclass
class ReadyNodes:
    """Made by ``no_nodes``.

    nodes: ids of brokers that something can be sent to now.
    next_check: ms until a batch that waits now can go; infinite if none does.
    leaderless: topics with batches whose partition has no leader; None where there is none, as nearly always.
    ripe: those of ``nodes`` with a batch that gains nothing by waiting (full, sent before, asked for now); or None.
    """

    if not cython.compiled:
        nodes: list[int]
        next_check: float
        leaderless: set[str] | None
        ripe: list[int] | None

    @cython.cfunc
    def note_leaderless(self, topic: str) -> object:
        if self.leaderless is None:
            self.leaderless = set()
        self.leaderless.add(topic)
        return None


@cython.cfunc
def no_nodes() -> ReadyNodes:
    """To be filled in."""
    found: ReadyNodes = ReadyNodes.__new__(ReadyNodes)
    found.nodes = []
    found.next_check = INFINITY
    found.ripe = None
    found.leaderless = None
    return found


@cython.final
@cython.cclass
class BatchSchedule:
    """The lines of waiting queues, by leader.

    Args:
        linger_ms: how long a batch that is not full waits for more records (``linger.ms``).
        delivery_timeout_ms: how old a batch may become (``delivery.timeout.ms``).
        backoff: delays between attempts (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        adaptive: weigh partitions by the length of their queues (``partitioner.adaptive.partitioning.enable``).
        availability_timeout_ms: leave out partitions of brokers that take no request for so long
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
        self.checked_at = -INFINITY  # the time of the last `ready`
        self.delivery_timeout_ms = delivery_timeout_ms
        self.backoff = backoff
        self.adaptive = adaptive
        self.loads = PartitionLoads(availability_timeout_ms)
        self.announced: list[Any] = []
        self.nodes: dict[int, deque[Any]] = {}
        self.next_expiry = INFINITY
        self.watched: list[Any] = []
        self.parked = ParkedQueues()
        self.all_due = self.torn = self.sending_all = False
        if not cython.compiled:
            self.lock = Mutex()

    @cython.cfunc
    @cython.exceptval(-1)
    def announce(self, queue: PartitionQueue) -> cython.int:
        """A queue got its first batch, or its lingering batch is full.  Any thread, the queue's lock held."""
        if queue.place == WATCHED or queue.place == ANNOUNCED:
            return 0
        queue.move(ANNOUNCED)
        acquire(self.lock)
        try:
            self.announced.append(queue)
        except MemoryError:
            self.torn = True  # the record is in its batch: its send() must not raise
        finally:
            release(self.lock)
        return 0

    def make_all_due(self) -> None:
        """No batch lingers in the next ``ready``: batches were closed and their queues not announced.  Any thread."""
        self.all_due = True

    @cython.cfunc
    @cython.exceptval(-1)
    def collect(self) -> cython.int:
        """Takes over the queues that were announced."""
        if len(self.announced) == 0:
            return 0
        none: list[Any] = []
        acquire(self.lock)
        try:
            fresh: list[Any] = self.announced
            self.announced = none
        finally:
            release(self.lock)
        queue: PartitionQueue
        for queue in fresh:
            if queue.line == NO_LINE:
                self.join_line(queue)
            self.watch(queue)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def watch(self, queue: PartitionQueue) -> cython.int:
        """Makes a queue WATCHED, whatever place it has."""
        acquire(queue.lock)
        try:
            if queue.place != WATCHED:
                queue.move(WATCHED)
            if len(queue.batches) > 0:
                self._expect_expiry(queue.batches[0])
        finally:
            release(queue.lock)
        return self.sync_containers(queue, WATCHED)

    @cython.cfunc
    @cython.exceptval(-1)
    def sync_containers(self, queue: PartitionQueue, place: cython.int) -> cython.int:
        """Brings the containers to a move that the sender made.  Another thread may have announced the queue since."""
        if queue.watched_at >= 0 and place != WATCHED:
            last: PartitionQueue = self.watched.pop()
            if last is not queue:
                self.watched[queue.watched_at] = last
                last.watched_at = queue.watched_at
            queue.watched_at = -1
        if queue.parked_at >= 0 and place != PARKED:
            self.parked.remove(queue)
        if place == WATCHED and queue.watched_at < 0:
            self.watched.append(queue)
            queue.watched_at = cython.cast(cython.int, len(self.watched) - 1)
        elif place == PARKED and queue.parked_at < 0:
            self.parked.put(queue)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def join_line(self, queue: PartitionQueue) -> cython.int:
        self._line(queue.leader_id).append(queue)
        queue.line = queue.leader_id
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
                self.watch(queue)

    @cython.cfunc
    def move_memory(self, queue: PartitionQueue) -> cython.void:
        # Waiting batches count against the new leader's share.  Batches in flight stay with the node they went to.
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
            moved.account.pool.serve_waiters()

    # Which nodes are ready

    @cython.ccall
    def ready(self, now: cython.double, send_all: cython.bint) -> ReadyNodes:
        """The nodes that have a batch which should go now, and when to call again.

        Args:
            send_all: linger does not count (flush, close, a transaction that ends, memory exhausted with nothing
                else to send).
        """
        if not cython.compiled:
            check_owner(self)
        self.collect()
        self.checked_at = now
        self.sending_all = send_all
        everything: cython.bint = send_all
        if self.all_due:
            self.all_due = False  # before the queues are checked: if it is set meanwhile, it counts next time
            everything = True
        self.wake_parked(INFINITY if everything else now)
        found: ReadyNodes = no_nodes()
        at: cython.Py_ssize_t = 0
        while at < len(self.watched):
            # The last queue takes the index of one that is not watched any more.
            if self.check(self.watched[at], now, found):
                at += 1
        found.next_check = min(found.next_check, self.parked.next_due() - now)
        if self.adaptive:
            self.loads.weigh(now)
        return found

    @cython.cfunc
    @cython.exceptval(-1)
    def check(self, queue: PartitionQueue, now: cython.double, found: ReadyNodes) -> cython.bint:
        """Notes in ``found`` when a watched queue has a batch to send; False if it is not watched any more."""
        if queue.line == NO_LEADER and len(queue.batches) > 0:
            found.note_leaderless(queue.topic)
            return True
        wait: cython.double = 0
        due: cython.double = 0
        place: cython.int = WATCHED
        acquire(queue.lock)
        try:
            if len(queue.batches) == 0:
                place = IDLE
            else:
                wait = self.drainable_in(queue, now)
                due = self.lingers_until(queue)
                # Under the same lock, so that no thread can fill the batch in between without an announcement.
                if wait == 0 and due > now:
                    place = PARKED
                    queue.due = due
            if place != WATCHED:
                queue.move(place)
        finally:
            release(queue.lock)
        if place != WATCHED:
            self.sync_containers(queue, place)
            return False
        if wait > 0:
            found.next_check = min(found.next_check, wait)
            return True
        if queue.line not in found.nodes:
            found.nodes.append(queue.line)
        if due == -INFINITY:
            found.ripe = found.ripe or []
            if queue.line not in found.ripe:
                found.ripe.append(queue.line)
        return True

    @cython.cfunc
    @cython.exceptval(-2)
    def drainable_in(self, queue: PartitionQueue, now: cython.double) -> cython.double:
        """Ms until the first batch may be drained, whether it lingers or not; infinite where an event decides.

        The queue's lock is held, and it has a batch.
        """
        # Also for a partition that may not be drained now, because then its queue grows.
        if len(queue.batches) > 1 and self.adaptive:
            self.loads.note(queue.state)
        head: ProducerBatch = queue.batches[0]
        wait: cython.double = queue.blocked_for(head, now)
        if wait > 0:
            return wait
        head.update_leader_epoch(queue.leader_epoch)
        return head.retry_at - now if self.backs_off(head, now) else 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def lingers_until(self, queue: PartitionQueue) -> cython.double:
        """When the first batch has lingered long enough; the queue's lock is held, and it has a batch."""
        head: ProducerBatch = queue.batches[0]
        if len(queue.batches) > 1 or self.sending_all or head.attempts > 0 or head.is_full():
            return -INFINITY
        return head.created + self.linger_ms

    @cython.cfunc
    @cython.exceptval(-1)
    def wake_parked(self, now: cython.double) -> cython.int:
        """Watches the parked queues that are due."""
        while self.parked.next_due() <= now:
            queue: PartitionQueue | None = self.parked.first()
            if queue is None:
                break
            self.watch(queue)
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def backs_off(self, batch: ProducerBatch, now: cython.double) -> cython.bint:
        return batch.attempts > 0 and now < batch.retry_at and not batch.leader_changed_for_retry()

    # Retry and expiry

    @cython.ccall
    def reenqueue(self, batch: ProducerBatch, now: cython.double, gate: Gate | None) -> cython.void:
        """Puts a batch back for another attempt after its back-off, which is drawn here, once."""
        batch.attempts += 1
        batch.retry_at = now + self.backoff.delay(batch.attempts - 1)
        self.put_back(batch, gate)

    @cython.ccall
    def put_back(self, batch: ProducerBatch, gate: Gate | None) -> cython.void:
        """Puts a batch back into its queue, in order, and makes the queue WATCHED."""
        queue: PartitionQueue = batch.queue
        if batch.move_to(queue.leader_id):
            batch.account.pool.serve_waiters()
        queue.insert(batch, gate)
        self._expect_expiry(batch)
        self.watch(queue)
        if queue.line == NO_LINE:
            self._line(queue.leader_id).appendleft(queue)
            queue.line = queue.leader_id

    @cython.ccall
    def expired(self, now: cython.double) -> list[Any]:
        """Takes out all waiting batches that are older than the delivery timeout, also of muted partitions."""
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
        # Batches with sequences stand in that order, not by age, so all of them are checked.  An empty queue becomes
        # IDLE: a callback of an expired batch may append to it, and only an announcement notes when that batch expires.
        batch: ProducerBatch
        at: cython.Py_ssize_t = 0
        acquire(queue.lock)
        try:
            while at < len(queue.batches):
                batch = queue.batches[at]
                if batch.reached_delivery_timeout(self.delivery_timeout_ms, now):
                    gone.append(queue.pop_at(at))
                    continue
                self._expect_expiry(batch)
                at += 1
                if not batch.has_sequence():
                    break
            empty: cython.bint = len(queue.batches) == 0
            if empty and queue.place != IDLE:
                queue.move(IDLE)
        finally:
            release(queue.lock)
        if empty:
            self.sync_containers(queue, IDLE)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _expect_expiry(self, batch: ProducerBatch) -> cython.void:
        self.next_expiry = min(self.next_expiry, batch.created + self.delivery_timeout_ms)

    @cython.ccall
    @cython.exceptval(check=False)
    def next_expiry_at(self) -> cython.double:
        """When the next waiting batch may expire, in monotonic ms; infinite if none waits."""
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

    # After an exception in the middle of a turn

    @cython.ccall
    def rebuild(self, queues: list[Any], batches: list[Any], now: cython.double, gate: Gate | None) -> cython.void:
        """Derives every container from the queues, because an exception may have left them half changed.

        If it raises, it is called again in the next turn.

        Args:
            queues: all queues.
            batches: all batches without an outcome.  One that was drained and not sent goes back into its queue.
        """
        queue: PartitionQueue
        batch: ProducerBatch
        self.torn = False  # first: an announcement that is lost from now on counts for the next time
        self.collect()
        self.nodes.clear()
        self.watched.clear()
        self.parked = ParkedQueues()
        for queue in queues:
            queue.line = NO_LINE
            queue.watched_at = queue.parked_at = -1
        for batch in batches:
            queue = batch.queue
            if not batch.done and not batch.in_flight and not queue.has(batch):
                self.reenqueue(batch, now, gate)
        for queue in queues:
            # Also an empty one, because its place may be ANNOUNCED.  The next ``ready`` makes it IDLE.
            self.watch(queue)
            if queue.line == NO_LINE:
                self.join_line(queue)

    def __repr__(self) -> str:
        lines = ", ".join(f"{node_id}: {len(line)}" for node_id, line in self.nodes.items())
        return f"<BatchSchedule: queues waiting by leader {{{lines}}}>"
