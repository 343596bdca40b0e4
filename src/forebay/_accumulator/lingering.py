"""ParkedQueues: the queues whose only batch lingers, by the time at which it is due."""

from __future__ import annotations

import math
from typing import Any

import cython

from forebay._accumulator.topic import PartitionQueue

INFINITY: cython.double = math.inf


@cython.final
@cython.cclass
class ParkedQueues:
    """A binary heap; sender's thread only.  Each queue knows its index (``parked_at``), so any of them can leave.

    The road not taken: ``heapq`` of tuples.  Each would be one more object for the garbage collector, and a queue that
    leaves early would stay in the heap.
    """

    def __init__(self) -> None:
        self.heap: list[Any] = []

    @cython.cfunc
    @cython.exceptval(-1)
    def put(self, queue: PartitionQueue) -> cython.int:
        """Adds a queue that is due at ``queue.due``."""
        self.heap.append(queue)
        self.rise(queue, len(self.heap) - 1)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def remove(self, queue: PartitionQueue) -> cython.int:
        """Takes a queue out."""
        at: cython.Py_ssize_t = queue.parked_at
        queue.parked_at = -1
        last: PartitionQueue = self.heap.pop()
        if last is not queue:
            self.heap[at] = last
            self.sink(last, at)
            self.rise(last, last.parked_at)
        return 0

    @cython.cfunc
    def first(self) -> PartitionQueue | None:
        """The queue that is due first, or None."""
        return self.heap[0] if len(self.heap) > 0 else None

    @cython.cfunc
    @cython.exceptval(-2)
    def next_due(self) -> cython.double:
        """When the first queue is due (monotonic ms); infinite without one."""
        if len(self.heap) == 0:
            return INFINITY
        queue: PartitionQueue = self.heap[0]
        return queue.due

    @cython.cfunc
    @cython.exceptval(-1)
    def rise(self, queue: PartitionQueue, at: cython.Py_ssize_t) -> cython.int:
        while at > 0:
            parent: cython.Py_ssize_t = (at - 1) // 2
            above: PartitionQueue = self.heap[parent]
            if above.due <= queue.due:
                break
            self.set(at, above)
            at = parent
        self.set(at, queue)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def sink(self, queue: PartitionQueue, at: cython.Py_ssize_t) -> cython.int:
        count: cython.Py_ssize_t = len(self.heap)
        while 2 * at + 1 < count:
            child: cython.Py_ssize_t = 2 * at + 1
            below: PartitionQueue = self.heap[child]
            if child + 1 < count:
                right: PartitionQueue = self.heap[child + 1]
                if right.due < below.due:
                    child += 1
                    below = right
            if queue.due <= below.due:
                break
            self.set(at, below)
            at = child
        self.set(at, queue)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def set(self, at: cython.Py_ssize_t, queue: PartitionQueue) -> cython.int:
        self.heap[at] = queue
        queue.parked_at = cython.cast(cython.int, at)
        return 0
