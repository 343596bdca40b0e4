"""ParkedQueues: the queues whose first batch lingers, by the time at which it is due."""

from __future__ import annotations

import math
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.forebay._accumulator.topic import PartitionQueue
    from cython.cimports.forebay._codec._due_heap import (
        drop_entries,
        entry_count,
        first_due,
        first_item,
        item_at,
        more_entries,
        no_entries,
        put_entry,
        take_entry,
    )
else:
    from forebay._accumulator.topic import PartitionQueue
    from forebay._codec._due_heap import (
        drop_entries,
        entry_count,
        first_due,
        first_item,
        item_at,
        more_entries,
        no_entries,
        put_entry,
        take_entry,
    )

INFINITY: cython.double = math.inf


@cython.final
@cython.cclass
class ParkedQueues:
    """A heap; sender thread only.

    A queue has one place in it, whatever became of the batch that it was put in for: nobody takes it out when that
    batch goes early, and where a later batch waits longer, the queue moves back when it comes to the front.
    """

    def __init__(self) -> None:
        self.heap = no_entries()
        self.count = 0
        self.room = 0
        self.puts = 0

    def __dealloc__(self) -> None:
        drop_entries(self.heap, self.count)

    @cython.cfunc
    def put(self, queue: PartitionQueue) -> cython.void:
        """Takes in a queue that has no place yet, to be due at ``queue.due``."""
        count: cython.Py_ssize_t = entry_count(self.heap, self.count)
        if count >= self.room:
            self.heap = more_entries(self.heap, 2 * self.room + 16)
            self.room = 2 * self.room + 16
        self.puts += 1
        queue.in_heap = True
        put_entry(self.heap, count, queue.due, self.puts, queue)
        self.count = count + 1

    @cython.cfunc
    def pop(self, now: cython.double) -> PartitionQueue | None:
        """Takes out a parked queue that is due, or None."""
        return self.take_first() if self.next_due() <= now and entry_count(self.heap, self.count) > 0 else None

    @cython.cfunc
    def take_first(self) -> PartitionQueue:
        count: cython.Py_ssize_t = entry_count(self.heap, self.count)
        queue: PartitionQueue = first_item(self.heap)
        take_entry(self.heap, count)
        self.count = count - 1
        queue.in_heap = False
        return queue

    @cython.cfunc
    @cython.exceptval(-2)
    def next_due(self) -> cython.double:
        """When the next parked queue is due; infinite without one."""
        queue: PartitionQueue
        while entry_count(self.heap, self.count) > 0:
            queue = first_item(self.heap)
            if queue.parked and queue.due == first_due(self.heap):
                return queue.due
            self.take_first()
            if queue.parked:
                self.put(queue)
        return INFINITY

    @cython.cfunc
    def listed(self) -> list[Any]:
        """All queues that have a place, in no order."""
        return [item_at(self.heap, at) for at in range(entry_count(self.heap, self.count))]

    @cython.cfunc
    def clear(self) -> cython.void:
        """Takes all out."""
        while entry_count(self.heap, self.count) > 0:
            self.take_first()
