"""ParkedQueues: the queues whose first batch lingers, by the time at which it is due."""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.forebay._accumulator.topic import PartitionQueue
else:
    from forebay._accumulator.topic import PartitionQueue

INFINITY: cython.double = math.inf


@cython.final
@cython.cclass
class ParkedQueues:
    """A heap; sender thread only.

    A queue has one place in it, whatever became of the batch that it was put in for: nobody takes it out when that
    batch goes early, and where a later batch waits longer, the queue moves back when it comes to the front.
    """

    def __init__(self) -> None:
        self.heap: list[Any] = []  # of (when, number, queue)
        self.puts = 0

    @cython.cfunc
    def put(self, queue: PartitionQueue) -> cython.void:
        """Takes in a queue that has no place yet, to be due at ``queue.due``."""
        self.puts += 1
        queue.in_heap = True
        heappush(self.heap, (queue.due, self.puts, queue))

    @cython.cfunc
    def pop(self, now: cython.double) -> PartitionQueue | None:
        """Takes out a parked queue that is due, or None."""
        return self.take_first() if self.next_due() <= now and len(self.heap) > 0 else None

    @cython.cfunc
    def take_first(self) -> PartitionQueue:
        queue: PartitionQueue = heappop(self.heap)[2]
        queue.in_heap = False
        return queue

    @cython.cfunc
    @cython.exceptval(-2)
    def next_due(self) -> cython.double:
        """When the next parked queue is due; infinite without one."""
        queue: PartitionQueue
        while len(self.heap) > 0:
            due: cython.double = self.heap[0][0]
            queue = self.heap[0][2]
            if queue.parked and queue.due == due:
                return due
            self.take_first()
            if queue.parked:
                self.put(queue)
        return INFINITY
