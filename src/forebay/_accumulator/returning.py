"""MemoryReturn: gives the memory of batches with an outcome back to the pool, to those who wait in one go.

The line for memory is served in order, batch by batch.  A thread in it would be woken for one batch, fill it and what
else came back with it, and stand in line again: a switch of threads a request, a tenth of what a producer with a full
buffer does, and a batch where many wait, a fifth.  So what comes back while there is no memory for somebody is held
until it is worth while, for milliseconds at most, in the middle of an answer whose callbacks take their time, too.
Nobody lacks work meanwhile, for the buffer is full; where nothing more can come it is given back at once, and so it is
to a callback that sends (it cannot wait).
"""

from __future__ import annotations

import math
from typing import Any

import cython
from cython.cimports.forebay._accumulator.batch import ProducerBatch
from cython.cimports.forebay._accumulator.pool import BufferPool
from cython.cimports.forebay._accumulator.topic import PartitionQueue

HOLD_MS = cython.declare(cython.double, 5.0)
INFINITY: cython.double = math.inf


@cython.final
@cython.cclass
class MemoryReturn:
    """Sender thread only.

    Args:
        pool: an eighth of its total is worth everybody's while.
        clock: read only while somebody waits.
    """

    def __init__(self, pool: BufferPool, clock: Any) -> None:
        self.pool = pool
        self.clock = clock
        self.held: list[Any] = []
        self.size = 0
        self.since = -1.0

    @cython.ccall
    def give_back(self, batch: ProducerBatch) -> cython.void:
        """``batch`` has its outcome: its memory goes back now, or with that of others."""
        queue: PartitionQueue = batch.queue
        if not queue.lets_go(batch):
            return
        if not self.pool.starved():
            batch.release()
            return
        self.held.append(batch)
        at: cython.Py_ssize_t
        for at in range(batch.buffer_count()):
            self.size += batch.buffer_at(at).size
        self.serve(self.clock.now(), False)

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
        self.let_go()
        return INFINITY

    @cython.ccall
    @cython.exceptval(-1)
    def let_go(self) -> cython.bint:
        """Gives back what is held; whether there was anything."""
        held: list[Any] = self.held
        self.held = []
        self.size = 0
        self.since = -1.0
        batch: ProducerBatch
        for batch in held:
            batch.release()
        return len(held) > 0

    def __repr__(self) -> str:
        return f"<MemoryReturn: {len(self.held)} batches, {self.size} bytes held>"
