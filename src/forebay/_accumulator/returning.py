"""MemoryReturn: gives the memory of batches with an outcome back to the pool, to many who wait in one go.

The line for memory is served in order, batch by batch.  With many threads in it each would be woken for one batch, fill
it, and stand in line again: a switch of threads a batch, a fifth of all that a busy producer does.  So what comes back
while many wait is held until it is worth their while, for milliseconds at most.
"""

from __future__ import annotations

import math
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.forebay._accumulator.batch import ProducerBatch
    from cython.cimports.forebay._accumulator.pool import BufferPool
    from cython.cimports.forebay._accumulator.topic import PartitionQueue
else:
    from forebay._accumulator.batch import ProducerBatch
    from forebay._accumulator.pool import BufferPool
    from forebay._accumulator.topic import PartitionQueue

FEW = cython.declare(cython.Py_ssize_t, 1)
"""So many in line are served at once."""
HOLD_MS = cython.declare(cython.double, 5.0)
INFINITY: cython.double = math.inf


@cython.final
@cython.cclass
class MemoryReturn:
    """Sender thread only.

    Args:
        pool: an eighth of its total is worth everybody's while.
    """

    def __init__(self, pool: BufferPool) -> None:
        self.pool = pool
        self.held: list[Any] = []
        self.size = 0
        self.since = -1.0

    @cython.ccall
    def give_back(self, batch: ProducerBatch) -> cython.void:
        """``batch`` has its outcome: its memory goes back now, or with that of others."""
        queue: PartitionQueue = batch.queue
        if not queue.lets_go(batch):
            return
        if self.pool.queued() <= FEW:
            batch.release()
            return
        self.held.append(batch)
        self.size += batch.estimated_size()

    @cython.ccall
    @cython.exceptval(-1)
    def serve(self, now: cython.double, idle: cython.bint) -> cython.double:
        """To be called in each turn before anybody asks who waits; ms until it is due again, infinite if none is held.

        Args:
            idle: nothing is in flight that could give back more.
        """
        if len(self.held) == 0:
            return INFINITY
        if self.since < 0:
            self.since = now
        left: cython.double = self.since + HOLD_MS - now
        if left > 0 and not idle and self.size < self.pool.total >> 3:
            return left
        held: list[Any] = self.held
        self.held = []
        self.size = 0
        self.since = -1.0
        batch: ProducerBatch
        for batch in held:
            batch.release()
        return INFINITY

    def __repr__(self) -> str:
        return f"<MemoryReturn: {len(self.held)} batches, {self.size} bytes held>"
