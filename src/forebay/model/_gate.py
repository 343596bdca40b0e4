"""What the gate sees of the accumulator's batches and queues, and the accumulator of its gate.

The accumulator and the transactions do not know each other: these are the fields and calls that both know, as base
classes, so that a batch costs no look-up of an attribute by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cython


@cython.cclass
class GatedQueue:
    """A partition's queue, with a slot for the gate's state, so that no batch costs a dictionary look-up."""

    def __init__(self, topic: str, partition: cython.int) -> None:
        self.topic = topic
        self.partition = partition
        self.gate_state: Any = None


@cython.no_gc
@cython.cclass
class StampedBatch:
    """A batch and its stamp; ``base_sequence`` is -1 until it was stamped.

    ``incarnation`` says for which incarnation of its topic the batch was drained last: a number that differs where the
    topic was deleted and made again, and with it the log.  It is set before the gate is asked, so that what the gate
    judges is what is sent, although other threads may apply newer metadata meanwhile.  ``stamped_for`` is the one for
    which it first went out under its stamp.  ``leader_epoch`` is the newest one known when it was drained last, -1 if
    none is.  ``by_name`` says that a request for it went by the topic's name: then its records may be in the log of a
    later incarnation than that.  All are the sender's thread's.

    Not tracked by the garbage collector, for the reason given at ProducerBatch.
    """

    def __init__(self, queue: GatedQueue, record_count: cython.int) -> None:
        self.queue: Any = queue  # whoever owns it knows more of it
        self.record_count = record_count
        self.incarnation = self.stamped_for = 0
        self.leader_epoch = -1
        self.by_name = False
        self.set_producer_state(-1, -1, -1, False)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def set_producer_state(
        self,
        producer_id: cython.longlong,
        producer_epoch: cython.int,
        base_sequence: cython.int,
        transactional: cython.bint,
    ) -> cython.int:
        """Stamps the batch: at its first drain, and again only by an epoch bump."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.transactional = transactional
        return 0

    @cython.ccall
    @cython.exceptval(check=False)
    def has_sequence(self) -> cython.bint:
        """True once a producer id, epoch and sequence were stamped."""
        return self.base_sequence != -1


@cython.cclass
class Gate:
    """Decides which batches may be sent now, and stamps them; called on the sender's thread only."""

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def may_drain(self, queue: GatedQueue, batch: StampedBatch) -> cython.bint:
        """Whether ``batch``, the head of ``queue``, may be sent now; if not, the partition is skipped."""
        raise NotImplementedError

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def stamp(self, queue: GatedQueue, batch: StampedBatch) -> cython.int:
        """Called at every drain of ``batch``; gives it its sequence at the first."""
        raise NotImplementedError

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def comes_before(self, batch: StampedBatch, other: StampedBatch) -> cython.bint:
        """Whether a re-enqueued ``batch`` must stand ahead of ``other`` in their queue."""
        raise NotImplementedError

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def on_split(self, batch: StampedBatch, children: Sequence[StampedBatch]) -> cython.int:
        """``children`` take the place and the sequences of ``batch``."""
        raise NotImplementedError
