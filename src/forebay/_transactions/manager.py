"""TransactionManager: the producer's id and epoch, and the sequences of its batches, so that no retry writes twice.

It is the accumulator's gate (it lets a batch out and stamps it) and tells the sender which failed batches may be
tried again.  An unrecoverable gap in a partition's sequences is closed without asking a broker (KIP-360).  The epoch
goes up by one, and the batches in flight of that partition are stamped anew from sequence 0.  Other partitions go on
under the old epoch until nothing of theirs is in flight.  After epoch 32767 comes a new producer id.

Differences to the Java client:

- A batch that failed with unknown outcome is always followed up, not only after a retry.
- New stamps wait until every batch ahead of the gap is settled.  After the last epoch they wait for the new id; Java
  sends those batches without an id.
- A batch out of order is no gap until the broker has been asked for all batches in flight (``out_of_order``).
- The first batch goes alone (``confirm_first``).
- Nothing depends on comparing sequences across the wrap.

In a transactional producer the epoch is not ours to bump: a gap ends the transaction, and what follows from it is
decided by the TransactionCalls.  A partition becomes part of the transaction when its first batch comes to the gate.

Sender thread only; other threads may read ``fatal_error``, ``producer_id`` and ``producer_epoch``.  While nothing is in
a batch (before, between and after transactions) the session's callers may set and drop the identity.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Protocol

import cython

from forebay._transactions.initialization import PASSING, InitAttempts, InitProducerIdCall, init_error
from forebay._transactions.partitions import TransactionPartitions
from forebay._transactions.sequences import PartitionSequences
from forebay._transactions.state import State, move
from forebay.errors import (
    ClusterAuthorizationError,
    InvalidProducerEpochError,
    KafkaError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    TransactionalIdAuthorizationError,
    UnknownProducerIdError,
    UnsupportedVersionError,
)
from forebay.errors._base import judged
from forebay.model._gate import Gate, GatedQueue, StampedBatch

if TYPE_CHECKING:
    from forebay._protocol.init_producer_id import InitProducerIdResponse
    from forebay._runtime.backoff import ExponentialBackoff

    class Dialog(Protocol):
        """What the identity asks of a transaction; ``dialog`` has it, which stands on this module."""

        def fatal(self, error: KafkaError) -> None: ...
        def on_failed_batch(self, error: KafkaError) -> None: ...


log = logging.getLogger("forebay.transactions")

NO_ID = cython.declare(cython.longlong, -1)
MAX_EPOCH = cython.declare(cython.int, 32767)

FATAL = (ClusterAuthorizationError, TransactionalIdAuthorizationError, ProducerFencedError, UnsupportedVersionError)
"""A produce request refused with one of these ends the producer."""


@cython.final
@cython.cclass
class TransactionManager(Gate):
    """The idempotent producer's bookkeeping.

    Args:
        backoff: between requests for a producer id (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        max_in_flight: batches of a partition from the lowest unconfirmed one on; the broker remembers 5.
        confirm_first: the first batch of a partition under an id and epoch goes alone, and so does the first for a
            topic that was made again.  A broker that does not know the producer takes whatever sequence comes first:
            if the first batch were put off (NOT_LEADER, not enough replicas) and the second taken, the first could
            never be written.  Java has this hole; False is Java's way.
    """

    def __init__(
        self, backoff: ExponentialBackoff, max_in_flight: cython.int = 5, confirm_first: cython.bint = True
    ) -> None:
        self.producer_id = NO_ID
        self.producer_epoch = -1
        self.has_producer_id = False
        self.state = State.UNINITIALIZED
        self.fatal_error: KafkaError | None = None
        self.max_in_flight = max_in_flight
        self.confirm_first = confirm_first
        self.asking = InitAttempts(backoff)
        self.to_rewrite: list[PartitionSequences] = []
        self.unresolved: list[PartitionSequences] = []
        self.dialog: Dialog | None = None
        self.members: TransactionPartitions | None = None

    # ---- the producer id

    @cython.ccall
    def begin_turn(self) -> cython.void:
        """Settles what the last turn left: sequences in doubt, then epoch bumps; call it before drain."""
        if len(self.unresolved) > 0:
            self.resolve()
        if len(self.to_rewrite) > 0 and self.has_producer_id:
            self.bump()

    @cython.ccall
    def needs_producer_id(self, now: cython.double, has_undrained: cython.bint) -> cython.bint:
        """Whether to send ``init_request()`` now; after a refusal only while records wait."""
        return self.time_to_next_request(now, has_undrained) <= 0

    @cython.ccall
    def time_to_next_request(self, now: cython.double, has_undrained: cython.bint) -> cython.double:
        """ms until ``needs_producer_id``: 0 if now, inf if nothing is to be asked or an answer is awaited."""
        if self.has_producer_id or self.fatal_error is not None:
            return inf
        return float(self.asking.delay(now, has_undrained))

    def init_request(self) -> InitProducerIdCall:
        """The request for a producer id; ``on_init_producer_id`` takes the answer."""
        if self.state is State.UNINITIALIZED:
            self.enter(State.INITIALIZING)
        self.asking.begin()
        return InitProducerIdCall()

    def on_init_producer_id(
        self, answer: InitProducerIdResponse | KafkaError, now: float, *, node: str
    ) -> KafkaError | None:
        """Takes the broker's answer, or the error that came in its place.

        Args:
            node: the broker that was asked, for the message.

        Returns:
            The error with which all batches at hand fail; None if there is none, or another try follows.  If it is
            fatal, ``fatal_error`` is set too.
        """
        self.asking.end()
        if self.fatal_error is not None:
            return None
        error = init_error(answer, node)
        if error is None:
            self.adopt(answer.producer_id, answer.producer_epoch)  # type: ignore[union-attr]
            return None
        if error.retriable:
            self.asking.put_off(now)
            log.debug("No producer id from %s yet: %s", node, error)
            return None
        if isinstance(error, PASSING):
            self.refuse(error, now)
            return error
        self.fail(error)
        return self.fatal_error

    def adopt(self, producer_id: int, producer_epoch: int) -> None:
        """Goes on under this id and epoch."""
        self.asking.succeed()
        self.enter(State.READY)
        self.set_identity(producer_id, producer_epoch)
        self.rewrite()

    def refuse(self, error: KafkaError, now: float) -> None:
        """Back to the start: the batches at hand fail, the next ones make for another request."""
        self.enter(State.ABORTABLE_ERROR)
        self.enter(State.UNINITIALIZED)
        self.asking.refuse(now)
        log.warning("The producer is not allowed to do idempotent sends: %s", error)

    @cython.ccall
    def fail(self, error: KafkaError) -> cython.void:
        """Ends the producer: nothing drains any more, and ``fatal_error`` is what every batch fails with."""
        if self.fatal_error is not None:
            return
        self.enter(State.FATAL_ERROR)
        error = judged(error, fatal=True)
        self.fatal_error = error
        self.has_producer_id = False
        if self.dialog is not None:
            self.dialog.fatal(error)
        log.error("The producer cannot go on: %s", error)

    @cython.cfunc
    def enter(self, target: State) -> cython.void:
        self.state = move(self.state, target)

    # ---- the accumulator's gate

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def may_drain(self, queue: GatedQueue, batch: StampedBatch) -> cython.bint:
        """Whether ``batch``, the head of ``queue``, may be sent now; if not, only this partition is skipped.

        A retry goes out only as the lowest batch in flight, so that one request at a time carries the partition
        until the retries are through.
        """
        if not self.has_producer_id:
            return False
        if self.members is not None and not self.members.admits(self.sequences_of(queue)):
            return False
        if queue.gate_state is None:
            return True
        sequences: PartitionSequences = queue.gate_state
        if batch.base_sequence >= 0:
            return sequences.is_lowest(batch)
        if not sequences.is_stamped_by(self.producer_id, self.producer_epoch) and len(sequences.in_flight) > 0:
            return False
        if self.confirm_first and sequences.is_fresh(batch.incarnation):
            return sequences.accepts_new(1)
        return sequences.accepts_new(self.max_in_flight)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def stamp(self, queue: GatedQueue, batch: StampedBatch) -> cython.int:
        """To be called at every drain: the first gives ``batch`` its id, epoch and sequence, for good."""
        sequences: PartitionSequences = self.sequences_of(queue)
        if batch.base_sequence >= 0:
            if len(sequences.rewritten) > 0 and sequences.forget_rewrite(batch):
                batch.stamped_for = batch.incarnation
            return 0
        if not sequences.is_stamped_by(self.producer_id, self.producer_epoch):
            sequences.start(self.producer_id, self.producer_epoch, 0)
        if self.members is not None:
            self.members.started = True
        sequences.assign(batch)
        return 0

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def comes_before(self, batch: StampedBatch, other: StampedBatch) -> cython.bint:
        """Whether a re-enqueued ``batch`` must stand ahead of ``other``, of the same queue.

        Walk the queue from its head and insert before the first batch for which this holds.
        """
        if other.base_sequence < 0:
            return True
        sequences: PartitionSequences = self.sequences_of(batch.queue)
        return sequences.position(batch) < sequences.position(other)

    @cython.cfunc
    def sequences_of(self, queue: GatedQueue) -> PartitionSequences:
        if queue.gate_state is None:
            # A queue lives as long as the accumulator: another one beginning with 0 under the same epoch would make new
            # records look like ones written before.
            queue.gate_state = PartitionSequences(queue.topic, queue.partition, self.members is not None)
        sequences: PartitionSequences = queue.gate_state
        return sequences

    # ---- outcomes

    @cython.ccall
    def on_completed(self, batch: StampedBatch, base_offset: cython.longlong) -> cython.void:
        """``batch`` was written, now or (DUPLICATE_SEQUENCE_NUMBER, offset -1) by an earlier try.

        Also for an answer that comes after the batch expired: it tells what the broker has.
        """
        sequences: PartitionSequences = self.sequences_of(batch.queue)
        if sequences.was_rewritten(batch):
            # Written under its old stamp; the broker waits for its new one now, which nobody will send.
            position: cython.Py_ssize_t = sequences.position(batch)
            sequences.drop(batch)
            self.request_bump(sequences, position)
            return
        if sequences.is_stamped_by(batch.producer_id, batch.producer_epoch):
            sequences.acknowledge(batch, base_offset)
        if sequences.drop(batch):
            self.request_bump(sequences, 0)

    @cython.ccall
    def can_retry(self, batch: StampedBatch, error: KafkaError, log_start_offset: cython.longlong) -> cython.bint:
        """Whether ``batch``, refused with ``error``, is to be sent again; asks for an epoch bump where that helps.

        Retries left and the delivery timeout are the sender's to check, before this.

        Args:
            log_start_offset: of the partition, from the response; -1 if it is not there.
        """
        sequences: PartitionSequences = self.sequences_of(batch.queue)
        if not isinstance(error, (OutOfOrderSequenceError, InvalidProducerEpochError)):
            sequences.interrupt()
            return bool(error.retriable)
        if sequences.was_rewritten(batch):
            return True  # the answer is about the old stamp
        if isinstance(error, InvalidProducerEpochError):
            return False
        stray: cython.bint = sequences.is_stray(batch)
        if sequences.is_overtaken(batch) and not stray:
            return True  # it is in the log: another stamp would write it twice
        position: cython.Py_ssize_t = sequences.position(batch)
        if self.members is not None:
            return self.members.can_retry(sequences, position, error, log_start_offset)
        forgotten: cython.bint = isinstance(error, UnknownProducerIdError)
        if forgotten and log_start_offset < 0:
            return True  # the broker does not know either (the partition may have moved away): ask again
        if forgotten and not sequences.turned:
            self.request_bump(sequences, position)
        elif position == 0:
            self.out_of_order(sequences, batch, stray and not sequences.goes_in_order())
        return True

    @cython.cfunc
    def out_of_order(self, sequences: PartitionSequences, batch: StampedBatch, stray: cython.bint) -> cython.void:
        # Everything ahead of ``batch`` is settled; further back it is only that a batch ahead has to be first.
        if stray:
            # A log that does not know our producer may have taken any batch behind the stray one first.  These keep
            # their stamps until each is known to be in the log or not.  Those that are not follow under the next epoch.
            self.request_bump(sequences, sequences.put_last(batch))
        elif sequences.turn(batch.leader_epoch):
            self.request_bump(sequences, 0)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def is_written(self, batch: StampedBatch, error: KafkaError) -> cython.bint:
        """Whether the broker refused ``batch``, of unknown fate until now, with ``error`` since it is in the log.

        It confirmed a later one, and does not remember the sequences of this one any more.  Not so where it cannot have
        had this one: it knew nothing of the producer and took the later one first.
        """
        if not isinstance(error, OutOfOrderSequenceError) or isinstance(error, UnknownProducerIdError):
            return False
        sequences: PartitionSequences = self.sequences_of(batch.queue)
        if sequences.was_rewritten(batch) or sequences.is_stray(batch):
            return False
        return sequences.is_overtaken(batch) and not sequences.skipped

    @cython.ccall
    def on_failed(self, batch: StampedBatch, error: KafkaError, adjust_sequences: cython.bint) -> cython.void:
        """``batch`` is given up.

        Args:
            adjust_sequences: the broker refused it, so its records are missing for good; False if it may have been
                written after all (expired, retries exhausted).
        """
        if isinstance(error, FATAL):
            self.fail(error)
        sequences: PartitionSequences = self.sequences_of(batch.queue)
        position: cython.Py_ssize_t = sequences.position(batch)
        if self.dialog is not None and (position >= 0 or batch.base_sequence < 0):
            self.dialog.on_failed_batch(error)
        if position < 0:
            return  # never sent, or settled before
        if self.members is not None:
            refused: cython.bint = adjust_sequences or isinstance(error, OutOfOrderSequenceError)
            self.members.lose(sequences, batch, error, refused)
            return
        ahead: cython.Py_ssize_t = sequences.ahead_of_gap(position)
        bump_due: cython.bint = sequences.drop(batch)
        if self.fatal_error is not None:
            return
        if bump_due:
            self.request_bump(sequences, 0)
        forgotten: cython.bint = isinstance(error, UnknownProducerIdError)
        if forgotten or (adjust_sequences and not isinstance(error, OutOfOrderSequenceError)):
            self.request_bump(sequences, ahead)
            return
        # Out of order is also what a broker says that has the batch and forgot.
        if not sequences.unresolved:
            self.unresolved.append(sequences)
        sequences.mark_unresolved(batch)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def on_split(self, batch: StampedBatch, children: Sequence[StampedBatch]) -> cython.int:
        """``batch`` was too large: ``children`` take its place and its sequences; before they are re-enqueued."""
        if batch.base_sequence >= 0:
            sequences: PartitionSequences = self.sequences_of(batch.queue)
            sequences.replace(batch, children)
        return 0

    # ---- closing gaps

    @cython.cfunc
    def resolve(self) -> cython.void:
        # Nothing in flight any more: either the broker confirmed all there was, or there is a gap.
        waiting: list[PartitionSequences] = []
        sequences: PartitionSequences
        for sequences in self.unresolved:
            if not sequences.unresolved:
                continue  # a bump settled it
            if len(sequences.in_flight) > 0:
                waiting.append(sequences)
                continue
            sequences.resolve()
            # Under an older epoch it starts anew with the next batch anyway.
            if sequences.is_stamped_by(self.producer_id, self.producer_epoch) and not sequences.is_expected(
                sequences.next_sequence
            ):
                self.request_bump(sequences, 0)
        self.unresolved = waiting

    @cython.cfunc
    def request_bump(self, sequences: PartitionSequences, position: cython.Py_ssize_t) -> cython.void:
        if self.members is not None:
            sequences.note_gap(position)
            self.members.note_damage(sequences)
        elif sequences.note_gap(position) and not sequences.bump_requested:
            sequences.bump_requested = True
            self.to_rewrite.append(sequences)

    @cython.cfunc
    def bump(self) -> cython.void:
        if self.producer_epoch < MAX_EPOCH:
            self.producer_epoch += 1
            log.info("Producer id %d goes on with epoch %d", self.producer_id, self.producer_epoch)
            self.rewrite()
            return
        # The batches keep their stamps, and stay here, until the new id comes.
        log.info("Producer id %d has used its last epoch", self.producer_id)
        self.producer_id = NO_ID
        self.producer_epoch = -1
        self.has_producer_id = False
        self.asking.hurry()
        self.enter(State.UNINITIALIZED)

    @cython.cfunc
    def rewrite(self) -> cython.void:
        sequences: PartitionSequences
        for sequences in self.to_rewrite:
            sequences.rewrite(self.producer_id, self.producer_epoch)
        self.to_rewrite = []

    # ---- transactions

    def begin_dialog(self, dialog: Dialog, members: TransactionPartitions) -> None:
        """This producer is transactional; before anything is sent."""
        self.dialog = dialog
        self.members = members

    def set_identity(self, producer_id: int, producer_epoch: int) -> None:
        """Goes on under this id and epoch; in a transactional producer each partition begins at sequence 0."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.has_producer_id = True
        if self.members is not None:
            self.members.restart(producer_id, producer_epoch)
        log.info("Producer id %d with epoch %d", producer_id, producer_epoch)

    def drop_identity(self) -> None:
        """The id belongs to somebody else from here on."""
        self.producer_id = NO_ID
        self.producer_epoch = -1
        self.has_producer_id = False
