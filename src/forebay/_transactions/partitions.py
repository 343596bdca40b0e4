"""TransactionPartitions: which partitions are in the open transaction, and whose sequences it has put in disorder.

A partition is in one of three places: unknown to the transaction, asked for, in it.  Its number in the sequences'
``asked_in`` and ``added_in`` says which, so that a batch costs a comparison.  A producer with transactions may not bump
its epoch by itself: a gap in the sequences ends the transaction, and they are put in order after its end.

Sender thread only, but ``begin`` and ``restart``, which are called while nothing is in a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import cython
from cython.cimports.forebay._transactions.sequences import increment_sequence

from forebay._transactions.sequences import PartitionSequences
from forebay.errors import KafkaError, UnknownProducerIdError
from forebay.model import TopicPartition

if TYPE_CHECKING:
    from forebay.model._gate import StampedBatch


@cython.final
@cython.cclass
class TransactionPartitions:
    """The partitions of one producer's transactions, one after the other."""

    def __init__(self) -> None:
        self.transaction = 0
        self.implicit = False
        self.started = False
        self.fresh: dict[TopicPartition, PartitionSequences] = {}
        self.asked: dict[TopicPartition, PartitionSequences] = {}
        self.damaged: list[PartitionSequences] = []

    def begin(self, implicit: bool) -> None:
        """The next batches belong to a new transaction.

        Args:
            implicit: the brokers add partitions by themselves (transaction version 2, KIP-890).
        """
        self.transaction += 1
        self.implicit = implicit
        self.started = False
        self.fresh = {}
        self.asked = {}

    def mark_started(self) -> None:
        """The coordinator has, or may have, something to end."""
        self.started = True

    @cython.ccall
    def admits(self, sequences: PartitionSequences) -> cython.bint:
        """Whether the partition is in the transaction; if not, it is to be added."""
        if self.implicit or sequences.added_in == self.transaction:
            return True
        if sequences.asked_in != self.transaction:
            sequences.asked_in = self.transaction
            self.fresh[TopicPartition(sequences.topic, sequences.partition)] = sequences
        return False

    def take_fresh(self) -> tuple[TopicPartition, ...]:
        """The partitions that are to be added; each is given out once."""
        taken = self.fresh
        self.fresh = {}
        self.asked.update(taken)
        return tuple(taken)

    def added(self, partitions: Sequence[TopicPartition]) -> None:
        """The coordinator has them in the transaction: their batches may go."""
        self.started = True
        for where in partitions:
            sequences: PartitionSequences | None = self.asked.pop(where, None)
            if sequences is not None:
                sequences.added_in = self.transaction

    # ---- sequences

    @cython.ccall
    def can_retry(
        self,
        sequences: PartitionSequences,
        position: cython.Py_ssize_t,
        error: KafkaError,
        log_start_offset: cython.longlong,
    ) -> cython.bint:
        """Whether a batch that the broker found out of order is worth another try in this transaction."""
        if 0 <= sequences.gap <= position:
            return False  # what is missing before it will never come
        if position != 0:
            return True
        if not isinstance(error, UnknownProducerIdError):
            return False
        if log_start_offset < 0:
            return True
        if sequences.last_acked_offset >= log_start_offset:
            return False
        # All records of this producer have been deleted, so the broker expects sequence 0 from any producer.
        sequences.rewrite(sequences.producer_id, sequences.producer_epoch)
        return True

    @cython.ccall
    def lose(
        self, sequences: PartitionSequences, batch: StampedBatch, error: KafkaError, refused: cython.bint
    ) -> cython.void:
        """A batch is given up, and the transaction with it.

        Args:
            refused: the broker does not have it; False if nobody knows.
        """
        position: cython.Py_ssize_t = sequences.position(batch)
        sequences.drop(batch)
        if isinstance(error, UnknownProducerIdError):
            sequences.forgotten = True
        if refused:
            sequences.note_gap(position)
        else:
            sequences.mark_unresolved(batch)
        self.note_damage(sequences)

    @cython.ccall
    def note_damage(self, sequences: PartitionSequences) -> cython.void:
        """The end of the transaction has to put the partition's sequences in order."""
        if not sequences.bump_requested:
            sequences.bump_requested = True
            self.damaged.append(sequences)

    def restart(self, producer_id: int, producer_epoch: int) -> None:
        """Another epoch: every sequence begins at 0, so there is no disorder any more."""
        sequences: PartitionSequences
        for sequences in self.damaged:
            sequences.start(producer_id, producer_epoch, 0)
            sequences.bump_requested = False
        self.damaged = []

    def mend(self) -> KafkaError | None:
        """The transaction has ended under the same epoch; nothing is in flight.

        Returns:
            Why no other transaction can follow, or None.  It is then unknown whether the records were written, and with
            that the next sequence; and a coordinator before InitProducerId v3 cannot give out another epoch.
        """
        self.started = False
        sequences: PartitionSequences
        for sequences in self.damaged:
            if sequences.unresolved and not sequences.is_expected(sequences.next_sequence):
                return KafkaError(
                    f"It is not known which records the broker has of {sequences.topic}-{sequences.partition}, and it "
                    "cannot give this producer another epoch (Kafka 2.5 and later can); make a new producer"
                )
            following: cython.int = 0
            if not sequences.forgotten and sequences.last_acked_sequence >= 0:
                following = increment_sequence(sequences.last_acked_sequence, 1)
            sequences.start(sequences.producer_id, sequences.producer_epoch, following)
            sequences.bump_requested = False
        self.damaged = []
        return None
