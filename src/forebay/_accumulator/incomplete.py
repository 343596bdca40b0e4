"""IncompleteBatches: every batch without an outcome, and whether there may be more of them.

Flush, close and commit wait for them.  A batch is in here from before it holds a record until it has its outcome.  The
children of a split come in before their parent leaves, so that no caller sees too few.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.topic import PartitionQueue


@cython.final
@cython.cclass
class IncompleteBatches:
    """Any thread; ``lock`` guards all fields and comes after a queue's lock.

    The batches are in a list in no order, and each knows its index.  The road not taken: a set, which takes several
    times the memory.
    """

    def __init__(self) -> None:
        self.batches: list[ProducerBatch] = []
        self.closed = False
        self.sealed = False
        self.flushes = 0
        if not cython.compiled:
            self.lock = Mutex()

    @cython.cfunc
    @cython.exceptval(-1)
    def admit(self, batch: ProducerBatch) -> cython.bint:
        """Takes in a new batch; False, without effect, while none is accepted."""
        acquire(self.lock)
        try:
            if self.closed or self.sealed:
                return False
            self.put(batch)
            return True
        finally:
            release(self.lock)

    @cython.ccall
    def replace(self, parent: ProducerBatch, children: list[Any]) -> cython.void:
        """Takes in the children of a split, even if closed or sealed, and drops the parent."""
        child: ProducerBatch
        acquire(self.lock)
        try:
            for child in children:
                self.put(child)
            self.take_out(parent)
        finally:
            release(self.lock)

    @cython.cfunc
    @cython.exceptval(-1)
    def discard(self, batch: ProducerBatch) -> cython.int:
        acquire(self.lock)
        try:
            self.take_out(batch)
        finally:
            release(self.lock)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def put(self, batch: ProducerBatch) -> cython.int:
        self.batches.append(batch)
        batch.slot = cython.cast(cython.int, len(self.batches) - 1)
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def take_out(self, batch: ProducerBatch) -> cython.int:
        # The last batch takes its place in the list.
        at: cython.Py_ssize_t = batch.slot
        if at < 0:
            return 0
        last: ProducerBatch = self.batches.pop()
        if last is not batch:
            self.batches[at] = last
            last.slot = batch.slot
        batch.slot = -1
        return 0

    @cython.ccall
    def close(self) -> cython.void:
        """Admits no batch any more."""
        acquire(self.lock)
        try:
            self.closed = True
        finally:
            release(self.lock)

    @cython.ccall
    def seal(self) -> cython.void:
        """Admits no batch until ``unseal``, and no batch that is in here takes a further record.

        Those batches can be sent like full ones; the sender compresses them.
        """
        acquire(self.lock)
        try:
            self.sealed = True
        finally:
            release(self.lock)
        self.closed_for_appends()

    def closed_for_appends(self) -> list[ProducerBatch]:
        """All of them; none takes a further record."""
        batch: ProducerBatch
        queue: PartitionQueue
        # A batch that was admitted before is in this list.  Its thread holds the queue's lock until its record is in.
        batches: list[Any] = self.listed(0)
        for batch in batches:
            queue = batch.queue
            acquire(queue.lock)
            try:
                batch.close_for_appends()
            finally:
                release(queue.lock)
        return batches

    @cython.ccall
    def unseal(self) -> cython.void:
        """Admits new batches again."""
        acquire(self.lock)
        try:
            self.sealed = False
        finally:
            release(self.lock)

    @cython.ccall
    def add_flushes(self, change: cython.int) -> cython.void:
        """Counts the threads that wait in flush()."""
        acquire(self.lock)
        try:
            self.flushes += change
        finally:
            release(self.lock)

    @cython.ccall
    def listed(self, flushes: cython.int) -> list[Any]:
        """All of them; adds ``flushes`` to the count in the same moment."""
        # The list is made before the lock is taken: making one may run the garbage collector, and so finalisers.
        at: cython.Py_ssize_t = 0
        while True:
            batches: list[Any] = [None] * (len(self.batches) + 8)
            acquire(self.lock)
            try:
                enough: cython.bint = len(self.batches) <= len(batches)
                if enough:
                    self.flushes += flushes
                    for batch in self.batches:
                        batches[at] = batch
                        at += 1
            finally:
                release(self.lock)
            if enough:
                return batches[:at]

    def __len__(self) -> int:
        return len(self.batches)

    def __repr__(self) -> str:
        return f"<IncompleteBatches: {len(self.batches)}{', closed' if self.closed else ''}>"
