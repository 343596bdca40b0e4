"""Sequence arithmetic and the bookkeeping of one partition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._transactions.sequences import (
    PartitionSequences,
    decrement_sequence,
    increment_sequence,
    is_later,
)

from .fakes import FakeBatch, FakeQueue

LAST = 2**31 - 1
QUEUE = FakeQueue()


def fresh(next_sequence: int = 0) -> PartitionSequences:
    sequences = PartitionSequences("test", 0, False)
    sequences.start(13131, 1, next_sequence)
    return sequences


def assigned(sequences: PartitionSequences, *counts: int) -> list[FakeBatch]:
    batches = [FakeBatch(QUEUE, count) for count in counts]
    for batch in batches:
        sequences.assign(batch)
    return batches


class TestArithmetic:
    @pytest.mark.parametrize(
        ("sequence", "by", "result"),
        [(5, 5, 10), (LAST, 1, 0), (LAST - 5, 10, 4), (0, LAST, LAST), (LAST, 100, 99), (99, LAST, 98)],
    )
    def test_increment(self, sequence: int, by: int, result: int) -> None:
        """A9 increment: wraps to 0 after 2^31 - 1."""
        assert increment_sequence(sequence, by) == result

    @pytest.mark.parametrize(("sequence", "by", "result"), [(0, 1, LAST), (5, 5, 0), (4, 10, LAST - 5)])
    def test_decrement(self, sequence: int, by: int, result: int) -> None:
        """A9 decrement: wraps to 2^31 - 1 before 0."""
        assert decrement_sequence(sequence, by) == result

    @given(st.integers(0, LAST), st.integers(0, LAST))
    def test_decrement_undoes_increment(self, sequence: int, by: int) -> None:
        assert decrement_sequence(increment_sequence(sequence, by), by) == sequence

    @given(st.integers(0, LAST), st.integers(1, 2**30 - 1))
    def test_later(self, sequence: int, by: int) -> None:
        later = increment_sequence(sequence, by)
        assert is_later(later, sequence) and not is_later(sequence, later) and not is_later(later, later)

    @given(st.integers(0, LAST))
    def test_none_comes_before_all(self, sequence: int) -> None:
        assert is_later(sequence, -1) and not is_later(-1, sequence) and not is_later(-1, -1)


class TestBookkeeping:
    def test_first_batch_has_sequence_0(self) -> None:
        sequences = fresh()
        first, second = assigned(sequences, 3, 2)
        assert (first.stamp, second.stamp) == ((13131, 1, 0), (13131, 1, 3))
        assert sequences.next_sequence == 5 and sequences.in_flight == [first, second]

    def test_wrap_with_five_in_flight(self) -> None:
        """O10 wrap-around: five batches of two around 2^31 - 1, confirmed in order."""
        sequences = fresh(LAST - 4)
        batches = assigned(sequences, 2, 2, 2, 2, 2)
        assert [batch.base_sequence for batch in batches] == [LAST - 4, LAST - 2, LAST, 1, 3]
        assert not sequences.accepts_new(5)
        confirmed = []
        for batch in batches:
            assert sequences.is_lowest(batch) and sequences.is_expected(batch.base_sequence)
            sequences.acknowledge(batch, -1)
            sequences.drop(batch)
            confirmed.append(sequences.last_acked_sequence)
        assert confirmed == [LAST - 3, LAST - 1, 0, 2, 4]
        assert sequences.is_expected(sequences.next_sequence) and sequences.accepts_new(5)

    def test_acknowledged_out_of_order(self) -> None:
        sequences = fresh(LAST)
        first, second = assigned(sequences, 1, 1)
        sequences.acknowledge(second, 1000)
        assert sequences.is_overtaken(first)
        sequences.acknowledge(first, -1)
        assert (sequences.last_acked_sequence, sequences.last_acked_offset) == (0, 1000)

    def test_offset_is_that_of_the_last_record(self) -> None:
        sequences = fresh()
        (batch,) = assigned(sequences, 5)
        sequences.acknowledge(batch, 100)
        assert sequences.last_acked_offset == 104

    def test_limit_counts_from_the_lowest(self) -> None:
        sequences = fresh()
        batches = assigned(sequences, 1, 1, 1, 1, 1)
        for batch in batches[1:]:
            sequences.acknowledge(batch, -1)
            sequences.drop(batch)
        assert sequences.in_flight == [batches[0]] and not sequences.accepts_new(5)
        sequences.drop(batches[0])
        assert sequences.accepts_new(5)

    def test_rewrite(self) -> None:
        sequences = fresh(LAST)
        batches = assigned(sequences, 2, 3, 1)
        sequences.mark_unresolved(batches[0])
        sequences.rewrite(13131, 2)
        assert [batch.stamp for batch in batches] == [(13131, 2, 0), (13131, 2, 2), (13131, 2, 5)]
        assert (sequences.next_sequence, sequences.last_acked_sequence, sequences.unresolved) == (6, -1, False)
        assert all(sequences.was_rewritten(batch) for batch in batches)
        assert sequences.forget_rewrite(batches[1]) and not sequences.forget_rewrite(batches[1])
        assert [sequences.was_rewritten(batch) for batch in batches] == [True, False, True]

    def test_split(self) -> None:
        sequences = fresh(LAST - 2)
        first, large, last = assigned(sequences, 1, 4, 1)
        children = [FakeBatch(QUEUE, 1), FakeBatch(QUEUE, 2), FakeBatch(QUEUE, 1)]
        sequences.replace(large, children)
        assert sequences.in_flight == [first, *children, last]
        assert [child.base_sequence for child in children] == [LAST - 1, LAST, 1]
        assert last.base_sequence == 2 and sequences.next_sequence == 3
        assert not sequences.accepts_new(5)
        sequences.drop(first)
        assert sequences.accepts_new(5)

    def test_split_of_what_is_settled(self) -> None:
        sequences = fresh()
        (batch,) = assigned(sequences, 2)
        sequences.drop(batch)
        child = FakeBatch(QUEUE)
        sequences.replace(batch, [child])
        assert child.base_sequence == -1 and sequences.in_flight == []

    def test_gap_moves_up_as_batches_settle(self) -> None:
        sequences = fresh()
        first, second, third = assigned(sequences, 1, 1, 1)
        assert not sequences.note_gap(2)
        assert not sequences.accepts_new(5)
        assert not sequences.drop(second)
        assert not sequences.drop(third)  # behind the gap
        assert sequences.drop(first)

    def test_the_first_gap_counts(self) -> None:
        sequences = fresh()
        assigned(sequences, 1, 1, 1)
        assert not sequences.note_gap(1) and not sequences.note_gap(2)
        assert sequences.gap == 1
        assert sequences.note_gap(0)

    def test_split_ahead_of_a_gap(self) -> None:
        sequences = fresh()
        large, _ = assigned(sequences, 2, 1)
        sequences.note_gap(1)
        children = [FakeBatch(QUEUE), FakeBatch(QUEUE)]
        sequences.replace(large, children)
        assert not sequences.drop(children[0])
        assert sequences.drop(children[1])

    def test_strangers(self) -> None:
        sequences = fresh()
        stranger = FakeBatch(QUEUE)
        assert sequences.position(stranger) == -1
        assert not sequences.drop(stranger) and not sequences.is_lowest(stranger)


class TestAnotherLog:
    def test_put_last(self) -> None:
        """The others come first; nothing new may follow before them all, whatever was confirmed."""
        sequences = fresh()
        first, second, third = assigned(sequences, 1, 1, 1)
        assert sequences.put_last(first) == 2
        assert sequences.in_flight == [second, third, first]
        assert not sequences.note_gap(2)
        assert not sequences.drop(second)
        assert sequences.drop(third)
        assert sequences.is_lowest(first)

    def test_put_last_of_one(self) -> None:
        sequences = fresh()
        (only,) = assigned(sequences, 1)
        assert sequences.put_last(only) == 0 and sequences.in_flight == [only]
        assert sequences.note_gap(0)

    def test_put_last_ahead_of_a_gap(self) -> None:
        sequences = fresh()
        first, second, third = assigned(sequences, 1, 1, 1)
        sequences.note_gap(2)
        assert sequences.put_last(first) == 2
        assert sequences.gap == 1 and sequences.in_flight == [second, third, first]
        assert sequences.put_last(first) == 2 and sequences.gap == 1, "behind the gap it stands for nothing"

    def test_the_window_begins_with_the_one_that_is_lowest_now(self) -> None:
        sequences = fresh()
        first, *others = assigned(sequences, 1, 1, 1, 1)
        sequences.put_last(first)
        for batch in others:
            sequences.drop(batch)
        assert sequences.accepts_new(2) and not sequences.accepts_new(1)

    def test_for_which_topic_a_batch_was_stamped_and_confirmed(self) -> None:
        sequences = fresh()
        batch = FakeBatch(QUEUE)
        batch.incarnation = 3
        sequences.assign(batch)
        assert batch.stamped_for == 3 and sequences.confirmed_for == 0
        batch.incarnation = 4
        sequences.acknowledge(batch, -1)
        assert batch.stamped_for == 3 and sequences.confirmed_for == 4

    def test_parts_are_stamped_for_what_the_whole_was_stamped_for(self) -> None:
        sequences = fresh()
        large = FakeBatch(QUEUE, 2)
        large.incarnation = 1
        sequences.assign(large)
        large.incarnation = 2
        children = [FakeBatch(QUEUE), FakeBatch(QUEUE)]
        sequences.replace(large, children)
        assert [child.stamped_for for child in children] == [1, 1]


class TestTurn:
    """Each batch in flight is asked for before all of them are known to be missing."""

    def test_one_alone_was_asked_for(self) -> None:
        sequences = fresh()
        assigned(sequences, 1)
        assert sequences.turn(1)

    @pytest.mark.parametrize("count", [2, 3, 5])
    def test_all_in_turn_and_then_in_their_order(self, count: int) -> None:
        sequences = fresh(LAST - 1)
        batches = assigned(sequences, *[1] * count)
        for asked in batches[:-1]:
            assert sequences.is_lowest(asked)
            assert not sequences.turn(1) and not sequences.accepts_new(9)
        assert sequences.is_lowest(batches[-1]) and sequences.turn(1)
        assert sequences.in_flight == batches and sequences.accepts_new(9)

    def test_another_answer_begins_anew(self) -> None:
        sequences = fresh()
        first, second, third = assigned(sequences, 1, 1, 1)
        assert not sequences.turn(1) and not sequences.turn(1)
        sequences.interrupt()
        assert not sequences.turn(1), "the third; then the order is right and not all were asked for"
        assert sequences.in_flight == [first, second, third]
        assert [sequences.turn(1) for _ in range(3)] == [False, False, True]

    def test_not_told_in_a_wrong_order(self) -> None:
        """All were out of order in a row, beginning with the second: they wait for their own order."""
        sequences = fresh()
        batches = assigned(sequences, 1, 1, 1)
        sequences.turn(1)
        sequences.interrupt()
        assert [sequences.turn(1) for _ in range(2)] == [False, False]
        assert sequences.in_flight == batches
        assert [sequences.turn(1) for _ in range(3)] == [False, False, True]

    def test_those_behind_a_gap_are_not_asked_for(self) -> None:
        sequences = fresh()
        batches = assigned(sequences, 1, 1, 1)
        sequences.note_gap(2)
        assert not sequences.turn(1) and sequences.in_flight == [batches[1], batches[0], batches[2]]
        assert sequences.turn(1) and sequences.in_flight == batches
        sequences.note_gap(0)
        assert sequences.turn(1) and sequences.in_flight == batches

    def test_new_ones_wait_until_the_order_is_right(self) -> None:
        sequences = fresh()
        first, second, third = assigned(sequences, 1, 1, 1)
        sequences.turn(1)
        sequences.acknowledge(second, -1)
        sequences.drop(second)
        assert sequences.in_flight == [third, first] and not sequences.accepts_new(5)
        assert sequences.is_overtaken(first) and not sequences.is_overtaken(third)
        sequences.drop(first)
        assert sequences.accepts_new(5)

    @pytest.mark.parametrize(("lost", "told"), [(0, True), (1, False), (2, False)])
    def test_one_that_was_given_up_may_be_the_last_in_the_log(self, lost: int, told: bool) -> None:
        """Behind one that can be asked for it leaves the question open; ahead of all of them it does not."""
        sequences = fresh(LAST - 1)
        batches = assigned(sequences, 1, 1, 1)
        sequences.mark_unresolved(batches[lost])
        sequences.drop(batches[lost])
        assert [sequences.turn(1) for _ in range(2)] == [False, told]

    def test_a_split_leaves_those_before_it_their_place(self) -> None:
        sequences = fresh()
        first, second, third = assigned(sequences, 1, 4, 1)
        sequences.turn(1)
        children = [FakeBatch(QUEUE) for _ in range(4)]
        sequences.replace(second, children)
        assert sequences.in_flight == [*children, third, first]
        assert [sequences.turn(1) for _ in range(5)] == [False] * 4 + [True]
        assert sequences.in_flight == [first, *children, third]

    def test_a_gap_is_behind_all_of_them(self) -> None:
        sequences = fresh()
        _, second, third, _ = assigned(sequences, 1, 1, 1, 1)
        assert sequences.ahead_of_gap(sequences.position(third)) == 2
        sequences.turn(1)
        assert sequences.ahead_of_gap(sequences.position(second)) == 3

    def test_another_leader_is_asked_for_all(self) -> None:
        sequences = fresh()
        batches = assigned(sequences, 1, 1)
        assert not sequences.turn(1)
        assert not sequences.turn(2) and sequences.in_flight == batches
        assert [sequences.turn(2) for _ in range(2)] == [False, True]

    def test_what_was_given_up_is_settled_by_a_later_one(self) -> None:
        """Else it would come after all others again once 2^30 more records have been sent."""
        sequences = fresh()
        lost, *written, _ = assigned(sequences, 1, 2**30 - 2, 10, 1)
        sequences.mark_unresolved(lost)
        sequences.drop(lost)
        for batch in written:
            sequences.acknowledge(batch, -1)
            sequences.drop(batch)
        assert sequences.turn(1)

    @pytest.mark.parametrize(("offset", "skipped"), [(-1, False), (7, True), (8, True), (9, False), (100, False)])
    def test_a_log_that_has_no_room_for_those_before(self, offset: int, skipped: bool) -> None:
        """Confirmed at 6; two records stand between that one and the next that is confirmed."""
        sequences = fresh(LAST)
        first, _, last = assigned(sequences, 1, 2, 1)
        sequences.acknowledge(first, 6)
        sequences.acknowledge(last, offset)
        assert sequences.skipped == skipped
        sequences.start(1, 1, 0)
        assert not sequences.skipped
