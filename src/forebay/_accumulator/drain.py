"""BatchDrain: takes the batches for one request, from the queues in the line of its node.

A line is served from its front, and a queue that gave a batch goes to the back.  If the size limit ends a drain, the
next one begins at the partition that did not fit.  A partition that may not be drained now (muted, backing off, not
allowed by the gate) is skipped; the Java client stops serving the whole broker there.
"""

from __future__ import annotations

import math
from typing import Any

import cython
from cython.cimports.forebay._accumulator.states import IDLE, NO_LINE, WATCHED
from cython.cimports.forebay._runtime.mutex import acquire, release

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.schedule import BatchSchedule
from forebay._accumulator.topic import PartitionQueue, TopicIncarnation
from forebay._runtime.owner import check_owner
from forebay.model._gate import Gate

INFINITY: cython.double = math.inf


@cython.final
@cython.cclass
class BatchDrain:
    """Sender's thread only.

    After a drain ``more`` says whether the node has batches that could follow at once, and ``cut_short`` whether they
    had no room in this request.  ``behind_check`` is the time in ms until the next batch can go of the partitions that
    were drained since ``begin``.  ``ripe_only`` leaves out batches that gain by waiting.
    """

    def __init__(self, schedule: BatchSchedule) -> None:
        self.schedule = schedule
        self.drains = 0
        self.more = self.cut_short = self.ripe_only = False
        self.behind_check = INFINITY

    @cython.ccall
    @cython.exceptval(check=False)
    def begin(self) -> cython.void:
        """A turn begins, in which no batch is drained yet."""
        self.behind_check = INFINITY

    @cython.ccall
    def drain(
        self, node_id: cython.int, max_size: cython.Py_ssize_t, now: cython.double, gate: Gate | None
    ) -> list[Any]:
        """At most one batch of each partition for one request to ``node_id``, together at most ``max_size`` bytes.

        A single batch that is larger goes alone.

        Args:
            gate: decides whether a partition may be drained, and stamps producer id and sequence, once for each batch.
        """
        if not cython.compiled:
            check_owner(self)
        batches: list[Any] = []
        self.more = self.cut_short = False
        line = self.schedule.nodes.get(node_id)
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
                self.check_behind(queue, now)
            elif queue.place == IDLE:
                # The next append announces the queue, and so it gets into a line again.
                line.popleft()
                queue.line = NO_LINE
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
    def check_behind(self, queue: PartitionQueue, now: cython.double) -> cython.int:
        # The batch behind the one that was taken may be due at once, or before anything that ``ready`` saw.
        wait: cython.double = INFINITY
        acquire(queue.lock)
        try:
            if len(queue.batches) > 0:
                wait = self.schedule.drainable_in(queue, now)
                if wait == 0:
                    wait = max(self.schedule.lingers_until(queue) - now, 0)
        finally:
            release(queue.lock)
        if wait == 0:
            self.more = True
        else:
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
            if self.ripe_only and self.schedule.lingers_until(queue) > -INFINITY:
                return False
            return not head.is_being_closed() and head.estimated_size() > room
        finally:
            release(queue.lock)

    @cython.cfunc
    def take(
        self, queue: PartitionQueue, room: cython.Py_ssize_t, now: cython.double, gate: Gate | None
    ) -> ProducerBatch | None:
        batch: ProducerBatch | None = self.head_for(queue, room, now)
        if batch is None:
            return None
        # Read once: the gate and the request must see the same one.
        incarnation: TopicIncarnation = queue.state.incarnation
        batch.set_target(incarnation.number, incarnation.topic_id, queue.leader_epoch)
        if gate is not None and not gate.may_drain(queue, batch):
            return None
        if not self.take_head(queue, batch, room):
            return None
        if gate is not None:
            gate.stamp(queue, batch)
        batch.drained = now
        queue.state.last_used = now
        if batch.drain_number == 0:
            self.drains += 1
            batch.drain_number = self.drains
        return batch

    @cython.cfunc
    def head_for(self, queue: PartitionQueue, room: cython.Py_ssize_t, now: cython.double) -> ProducerBatch | None:
        """The first batch, if it may be drained and fits into ``room`` bytes (-1: any size)."""
        if queue.muted:
            return None
        acquire(queue.lock)
        try:
            if len(queue.batches) > 0:
                batch: ProducerBatch = queue.batches[0]
                if batch.is_being_closed() or self.schedule.backs_off(batch, now):
                    return None
                if self.ripe_only and self.schedule.lingers_until(queue) > -INFINITY:
                    return None
                return batch if room < 0 or batch.estimated_size() <= room else None
            if queue.place != IDLE:
                queue.move(IDLE)
        finally:
            release(queue.lock)
        self.schedule.sync_containers(queue, IDLE)
        return None

    @cython.cfunc
    @cython.exceptval(-1)
    def take_head(self, queue: PartitionQueue, head: ProducerBatch, room: cython.Py_ssize_t) -> cython.bint:
        # Only this thread takes from the head, so ``head`` still is that.  But the lock was free while the gate was
        # asked, and ``head`` may have been open: another thread may have made it larger, or full, and compress it.
        acquire(queue.lock)
        try:
            if head.is_being_closed() or (room >= 0 and head.estimated_size() > room):
                return False
            head.sparse = not head.is_full()
            queue.pop_head()
            place: cython.int = WATCHED if len(queue.batches) > 0 else IDLE
            if queue.place != place:
                queue.move(place)
        finally:
            release(queue.lock)
        self.schedule.sync_containers(queue, place)
        return True
