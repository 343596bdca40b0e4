"""A partition's sequence numbers: what was given out, what is in flight, what the broker confirmed.

Pure bookkeeping, without time, states or requests.  Sequences count records and wrap from 2^31 - 1 to 0.  A batch
gets its sequence when it is first drained and keeps it, so that the broker can tell a retry from a new batch;
only ``rewrite``, at an epoch bump, gives out new ones.  Batches that are in flight stay in the order in which they
were stamped, so nothing here compares sequences to sort (which goes wrong at the wrap).

Sender thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cython
from cython.cimports.forebay._records.layout import MAX_SEQUENCE

from forebay.model._gate import StampedBatch

NONE = cython.declare(cython.int, -1)
HALF = cython.declare(cython.longlong, 0x40000000)


@cython.ccall
@cython.exceptval(check=False)
def increment_sequence(sequence: cython.longlong, by: cython.longlong) -> cython.int:
    """``sequence`` + ``by``, where 0 follows 2^31 - 1."""
    return cython.cast(cython.int, (sequence + by) & MAX_SEQUENCE)


@cython.ccall
@cython.exceptval(check=False)
def decrement_sequence(sequence: cython.longlong, by: cython.longlong) -> cython.int:
    """``sequence`` - ``by``, where 2^31 - 1 comes before 0."""
    return cython.cast(cython.int, (sequence - by) & MAX_SEQUENCE)


@cython.ccall
@cython.exceptval(check=False)
def is_later(sequence: cython.longlong, other: cython.longlong) -> cython.bint:
    """Whether ``sequence`` comes after ``other``; -1 comes before all, else the shorter way around decides."""
    if other < 0 or sequence < 0:
        return sequence > other
    distance: cython.longlong = (sequence - other) & MAX_SEQUENCE
    return 0 < distance < HALF


@cython.final
@cython.cclass
class PartitionSequences:
    """The state of one partition; lives in its queue's ``gate_state``.

    ``in_flight`` holds every stamped batch that is neither confirmed nor failed, also those that wait in the queue
    for another try.  ``rewritten`` are the ones that were given a new stamp and not sent since: an answer that
    comes now is about the old one.
    """

    def __init__(self, topic: str, partition: cython.int, transactional: cython.bint) -> None:
        self.topic = topic
        self.partition = partition
        self.transactional = transactional
        self.bump_requested = False
        # Numbers of the last transactions that the partition was to be added to, and was added to.
        self.asked_in = 0
        self.added_in = 0
        self.in_flight: list[Any] = []
        self.rewritten: list[Any] = []
        # In step with in_flight: the ordinal of each batch in its partition, by the time of its stamp.
        self.ordinals: list[int] = []
        self.stamped = 0
        self.last_acked_offset = -1
        # The incarnation of the topic (StampedBatch) whose log confirmed a batch last.
        self.confirmed_for = 0
        self.start(-1, -1, 0)

    @cython.ccall
    @cython.exceptval(check=False)
    def is_stamped_by(self, producer_id: cython.longlong, producer_epoch: cython.int) -> cython.bint:
        """Whether the sequences are those of this producer id and epoch."""
        return self.producer_id == producer_id and self.producer_epoch == producer_epoch

    @cython.ccall
    def accepts_new(self, limit: cython.Py_ssize_t) -> cython.bint:
        """Whether a batch without sequence may follow: nothing to mend before it, and the lowest within ``limit``.

        The broker remembers the last five batches of a producer.  Were a sixth written before the first is
        confirmed, a retry of the first would not be known for what it is.  So batches count that were confirmed
        ahead of the lowest in flight, which happens when the leader moves.  Batches that have a new stamp go
        first: under a new id the broker takes whatever sequence comes first.
        """
        if self.unresolved or self.turned or self.gap != NONE or len(self.rewritten) > 0:
            return False
        if len(self.ordinals) == 0:
            return True
        lowest: cython.longlong = self.ordinals[0]
        return self.stamped - lowest < limit

    @cython.ccall
    @cython.exceptval(check=False)
    def is_fresh(self, incarnation: cython.int) -> cython.bint:
        """Whether the log of this incarnation of the topic may know nothing of the producer yet.

        An answer about the previous topic says nothing.  A stale broker may mix the two (hence ``!=``, not ``<``): its
        answer says nothing either.
        """
        if self.last_acked_sequence < 0 or self.confirmed_for != incarnation:
            return True
        count: cython.Py_ssize_t = len(self.in_flight)
        if count == 0:
            return False
        last: StampedBatch = self.in_flight[count - 1]
        return last.incarnation != incarnation

    @cython.ccall
    def is_lowest(self, batch: StampedBatch) -> cython.bint:
        """Whether ``batch`` is the first that the broker has not confirmed."""
        return len(self.in_flight) > 0 and self.in_flight[0] is batch

    @cython.ccall
    @cython.exceptval(check=False)
    def is_expected(self, sequence: cython.int) -> cython.bint:
        """Whether the broker, having written what it confirmed and nothing more, waits for ``sequence``."""
        if self.last_acked_sequence == NONE:
            return sequence == 0
        return sequence == increment_sequence(self.last_acked_sequence, 1)

    @cython.ccall
    def is_overtaken(self, batch: StampedBatch) -> cython.bint:
        """Whether the broker confirmed a later batch: then it has this one too, whatever it answers."""
        return is_later(self.last_acked_sequence, batch.base_sequence)

    @cython.ccall
    @cython.exceptval(check=False)
    def is_stray(self, batch: StampedBatch) -> cython.bint:
        """Whether ``batch`` has a stamp for another log than it went to, which may hold later batches without it.

        With topic ids a log begins with one batch alone.  Once it confirmed one, it holds no batch without all earlier
        ones.
        """
        if batch.stamped_for == batch.incarnation:
            return False
        return self.confirmed_for != batch.incarnation or not self.goes_in_order()

    @cython.cfunc
    @cython.exceptval(check=False)
    def goes_in_order(self) -> cython.bint:
        """Whether every batch of this epoch went by topic id, so that no log can hold one without all earlier ones."""
        batch: StampedBatch
        for batch in self.in_flight:
            if batch.by_name:
                return False
        return not self.overtaking

    @cython.ccall
    def position(self, batch: StampedBatch) -> cython.Py_ssize_t:
        """How many batches are in flight ahead of ``batch``; -1 if it is not in flight itself."""
        at: cython.Py_ssize_t
        for at in range(len(self.in_flight)):
            if self.in_flight[at] is batch:
                return at
        return -1

    @cython.ccall
    def start(self, producer_id: cython.longlong, producer_epoch: cython.int, next_sequence: cython.int) -> cython.void:
        """Begins anew under another id or epoch; nothing may be in flight."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.next_sequence = next_sequence
        self.last_acked_sequence = NONE if next_sequence == 0 else decrement_sequence(next_sequence, 1)
        self.unresolved = False
        # The broker does not know the producer here any more: it starts anew with sequence 0, whatever came before.
        self.forgotten = False
        # How many batches in flight come before records that are lost for good; -1 if there is no such gap.
        self.gap = NONE
        # How many batches in flight the broker found out of order, one after the other (``turn``).
        self.missed = 0
        self.asked_leader = NONE
        self.turned = False
        # The last sequence that was given up and may have been written.
        self.given_up = NONE
        # A batch was confirmed at an offset that leaves no room for earlier ones.
        self.skipped = False
        # Whether one of the settled batches may be in a log without earlier ones.
        self.overtaking = False

    @cython.ccall
    def assign(self, batch: StampedBatch) -> cython.void:
        """Stamps ``batch`` with the next sequence and follows it from here on."""
        # The stamp comes last: a stamped batch that the lists do not know would never be sent.
        self.ordinals.append(self.stamped)
        try:
            self.in_flight.append(batch)
        except MemoryError:
            self.ordinals.pop()
            raise
        batch.set_producer_state(self.producer_id, self.producer_epoch, self.next_sequence, self.transactional)
        batch.stamped_for = batch.incarnation
        self.next_sequence = increment_sequence(self.next_sequence, batch.record_count)
        self.stamped += 1

    @cython.ccall
    def was_rewritten(self, batch: StampedBatch) -> cython.bint:
        """Whether ``batch`` has a new stamp under which it was not sent yet."""
        return any_is(self.rewritten, batch)

    @cython.ccall
    def forget_rewrite(self, batch: StampedBatch) -> cython.bint:
        """``batch`` is sent under its new stamp, or finished; True if it had one."""
        if not any_is(self.rewritten, batch):
            return False
        self.rewritten = [other for other in self.rewritten if other is not batch]
        return True

    @cython.ccall
    def drop(self, batch: StampedBatch) -> cython.bint:
        """``batch`` is finished, one way or the other; True if nothing stands before the gap any more."""
        at: cython.Py_ssize_t = self.position(batch)
        if at < 0:
            return False
        self.in_flight.pop(at)
        self.ordinals.pop(at)
        self.forget_rewrite(batch)
        self.missed = 0
        self.turned = self.turned and not ascending(self.ordinals)
        if at < self.gap:
            self.gap -= 1
        return self.gap == 0

    @cython.ccall
    def acknowledge(self, batch: StampedBatch, base_offset: cython.longlong) -> cython.void:
        """The broker confirmed ``batch``, at ``base_offset`` (-1: it does not say)."""
        last: cython.int = increment_sequence(batch.base_sequence, batch.record_count - 1)
        newer: cython.bint = batch.incarnation > self.confirmed_for
        if batch.incarnation != self.confirmed_for:
            self.confirmed_for = batch.incarnation
            self.last_acked_offset = -1  # of another log
        if newer:
            # What the old log held, the new one does not.
            self.last_acked_sequence = last
        elif is_later(last, self.last_acked_sequence):
            self.note_room(batch, base_offset)
            self.last_acked_sequence = last
        if is_later(last, self.given_up):
            self.given_up = NONE
        # The topic was made again while batches were asked for in turn; its new log took one that was not the first.
        self.overtaking = self.overtaking or batch.by_name or (newer and self.turned)
        if base_offset >= 0:
            self.last_acked_offset = max(self.last_acked_offset, base_offset + batch.record_count - 1)

    @cython.cfunc
    def note_room(self, batch: StampedBatch, base_offset: cython.longlong) -> cython.void:
        # What was stamped in between stands in between, unless the log knew nothing of the producer.
        following: cython.longlong = increment_sequence(self.last_acked_sequence, 1)
        between: cython.longlong = decrement_sequence(batch.base_sequence, following)
        if between > 0 and 0 <= base_offset <= self.last_acked_offset + between:
            self.skipped = True

    @cython.ccall
    def replace(self, batch: StampedBatch, children: Sequence[StampedBatch]) -> cython.void:
        """A split: ``children`` share the sequences of ``batch`` among them and take its place."""
        at: cython.Py_ssize_t = self.position(batch)
        if at < 0:
            return
        sequence: cython.int = batch.base_sequence
        child: StampedBatch
        for child in children:
            child.set_producer_state(self.producer_id, self.producer_epoch, sequence, self.transactional)
            # The log that refused this batch may have taken later ones.
            child.stamped_for = batch.stamped_for
            child.by_name = batch.by_name
            sequence = increment_sequence(sequence, child.record_count)
        self.forget_rewrite(batch)
        more: cython.Py_ssize_t = len(children) - 1
        first: cython.longlong = self.ordinals[at]
        # Those that were stamped before it keep their ordinals, wherever they stand (``turn``).
        ordinals = [ordinal + more if ordinal > first else ordinal for ordinal in self.ordinals]
        ordinals[at : at + 1] = [first + number for number in range(more + 1)]
        self.in_flight[at : at + 1] = list(children)
        self.ordinals = ordinals
        self.stamped += more
        if at < self.gap:
            self.gap += cython.cast(cython.int, more)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def put_last(self, batch: StampedBatch) -> cython.Py_ssize_t:
        """Moves ``batch`` behind all others in flight, which must be settled before it; returns their number."""
        at: cython.Py_ssize_t = self.position(batch)
        last: cython.Py_ssize_t = len(self.in_flight) - 1
        newest: int = self.stamped
        # In place: an error half way would leave the lists out of step.
        for moved in range(at, last):
            self.in_flight[moved] = self.in_flight[moved + 1]
            self.ordinals[moved] = self.ordinals[moved + 1]
        self.in_flight[last] = batch
        self.ordinals[last] = newest
        self.stamped += 1
        if at < self.gap:
            self.gap -= 1
        return last

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def turn(self, leader_epoch: cython.int) -> cython.bint:
        """The lowest batch in flight was out of order: another one becomes the lowest; True if all have been.

        A broker that was started again remembers the last batch of a producer alone, of as many as it has.  So a
        batch that it has may be out of order too, but then a later one is not: asked for that one, the broker says
        that it has it.  Only if it knows none of them has it none of them.  Those behind a gap cannot have been
        written, and are not asked.

        Args:
            leader_epoch: of the leader that was asked.  Another leader may have fewer batches, and is asked for all.
        """
        if leader_epoch != self.asked_leader:
            self.missed = 0
            self.asked_leader = leader_epoch
        count: cython.Py_ssize_t = len(self.in_flight) if self.gap == NONE else self.gap
        self.missed += 1
        at: cython.Py_ssize_t
        # In place: an error half way would leave the lists out of step.
        for at in range(count - 1):
            self.in_flight[at], self.in_flight[at + 1] = self.in_flight[at + 1], self.in_flight[at]
            self.ordinals[at], self.ordinals[at + 1] = self.ordinals[at + 1], self.ordinals[at]
        self.turned = not ascending(self.ordinals)
        if self.missed < count or self.turned:
            return False
        self.missed = 0
        # A batch that was given up may be the last that the broker has.  Nothing asks for it any more, and answers
        # about later ones do not tell: more may be missing in between.
        asked: StampedBatch
        for at in range(count):
            asked = self.in_flight[at]
            if is_later(self.given_up, asked.base_sequence):
                return False
        return True

    @cython.ccall
    @cython.exceptval(check=False)
    def interrupt(self) -> cython.void:
        """The broker, or another one, said something else meanwhile: all are asked again."""
        self.missed = 0

    @cython.ccall
    def ahead_of_gap(self, position: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """How many others may be in the log if the batch at ``position`` never will be: those ahead of it.

        While they are asked for in turn it is all of them, since those ahead of it may stand anywhere.
        """
        return len(self.in_flight) - 1 if self.turned else position

    @cython.ccall
    @cython.exceptval(check=False)
    def note_gap(self, position: cython.Py_ssize_t) -> cython.bint:
        """Records are missing behind the first ``position`` batches in flight; True if there is none before them.

        Those before the gap may have been written although no answer says so: giving them new sequences now
        could write them twice (the Java client does).  Those behind it cannot have been.
        """
        if self.gap == NONE or position < self.gap:
            self.gap = cython.cast(cython.int, max(position, 0))
        return self.gap == 0

    @cython.ccall
    @cython.exceptval(check=False)
    def mark_unresolved(self, batch: StampedBatch) -> cython.void:
        """``batch`` failed and may have been written: nothing new is sent until those in flight tell.

        The Java client keeps the sequence after the lost batch to know which batch must be refused for there to be a
        gap; that is always the lowest in flight, at the wrap too.
        """
        self.unresolved = True
        self.overtaking = self.overtaking or batch.by_name
        last: cython.int = increment_sequence(batch.base_sequence, batch.record_count - 1)
        if is_later(last, self.given_up):
            self.given_up = last

    @cython.ccall
    @cython.exceptval(check=False)
    def resolve(self) -> cython.void:
        """It is known again what the broker has."""
        self.unresolved = False

    @cython.ccall
    def rewrite(self, producer_id: cython.longlong, producer_epoch: cython.int) -> cython.void:
        """Stamps all batches in flight anew, from sequence 0 in their order (KIP-360)."""
        self.start(producer_id, producer_epoch, 0)
        batch: StampedBatch
        for batch in self.in_flight:
            batch.set_producer_state(producer_id, producer_epoch, self.next_sequence, self.transactional)
            self.next_sequence = increment_sequence(self.next_sequence, batch.record_count)
        self.rewritten = list(self.in_flight)
        self.bump_requested = False

    def __repr__(self) -> str:
        return (
            f"<PartitionSequences {self.topic}-{self.partition}: id {self.producer_id} epoch {self.producer_epoch},"
            f" next {self.next_sequence}, confirmed {self.last_acked_sequence}, {len(self.in_flight)} in flight>"
        )


@cython.cfunc
def ascending(ordinals: list[int]) -> cython.bint:
    at: cython.Py_ssize_t
    for at in range(1, len(ordinals)):
        if ordinals[at] < ordinals[at - 1]:
            return False
    return True


@cython.cfunc
def any_is(batches: list[Any], batch: StampedBatch) -> cython.bint:
    # By identity: batches define no equality.
    for other in batches:
        if other is batch:
            return True
    return False
