"""IncompleteBatches: every batch without an outcome, and whether there may be more of them.

What flush, close and commit wait for.  A batch is in here from before it holds a record until it has its outcome,
the children of a split from before their parent leaves, so that nobody who asks in between sees too few.
"""

from __future__ import annotations

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.forebay._accumulator.batch import ProducerBatch
    from cython.cimports.forebay._accumulator.topic import PartitionQueue
else:
    import threading

    from forebay._accumulator.batch import ProducerBatch
    from forebay._accumulator.topic import PartitionQueue


@cython.final
@cython.cclass
class IncompleteBatches:
    """The set; any thread.  ``lock`` guards all fields and comes after a queue's lock."""

    def __init__(self) -> None:
        self.batches: set[ProducerBatch] = set()
        self.closed = False
        self.sealed = False
        self.flushes = 0
        if not cython.compiled:
            self.lock = threading.Lock()

    @cython.cfunc
    def admit(self, batch: ProducerBatch) -> cython.bint:
        """Takes in a new batch; False, without effect, where no more are accepted."""
        with self.lock:
            if self.closed or self.sealed:
                return False
            self.batches.add(batch)
            return True

    @cython.ccall
    def replace(self, parent: ProducerBatch, children: list[Any]) -> cython.void:
        """Takes in what a batch was split into, however closed or sealed, and lets the parent go."""
        with self.lock:
            self.batches.update(children)
            self.batches.discard(parent)

    @cython.cfunc
    def discard(self, batch: ProducerBatch) -> cython.void:
        with self.lock:
            self.batches.discard(batch)

    @cython.ccall
    def close(self) -> cython.void:
        """Admits nothing any more."""
        with self.lock:
            self.closed = True

    @cython.ccall
    def seal(self) -> cython.void:
        """Admits nothing until ``unseal``, and lets no batch that is in here take a further record.

        Those batches are sendable as full ones are; who compresses them is the sender.
        """
        with self.lock:
            self.sealed = True
        batch: ProducerBatch
        queue: PartitionQueue
        # Whoever was admitted before is in this list, and holds its queue's lock until its record is in.
        for batch in self.listed(0):
            queue = batch.queue
            with queue.lock:
                batch.close_for_appends()

    @cython.ccall
    def unseal(self) -> cython.void:
        """Admits new batches again."""
        with self.lock:
            self.sealed = False

    @cython.ccall
    def add_flushes(self, change: cython.int) -> cython.void:
        """Counts those that wait in flush()."""
        with self.lock:
            self.flushes += change

    @cython.ccall
    def listed(self, flushes: cython.int) -> list[Any]:
        """All of them, with ``flushes`` counted in the same moment."""
        # The list is made before the lock: making one may run the garbage collector, and so anybody's finalisers.
        at: cython.Py_ssize_t = 0
        while True:
            batches: list[Any] = [None] * (len(self.batches) + 8)
            with self.lock:
                enough: cython.bint = len(self.batches) <= len(batches)
                if enough:
                    self.flushes += flushes
                    for batch in self.batches:
                        batches[at] = batch
                        at += 1
            if enough:
                return batches[:at]

    def __len__(self) -> int:
        return len(self.batches)

    def __repr__(self) -> str:
        return f"<IncompleteBatches: {len(self.batches)}{', closed' if self.closed else ''}>"
