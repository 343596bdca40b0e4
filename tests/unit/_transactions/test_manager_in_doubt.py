"""Sequences in doubt: batches given up without an answer."""

from __future__ import annotations

from forebay.errors import DisconnectError, KafkaTimeoutError, RecordTooLargeError

from .fakes import LAST, NOT_LEADER, OUT_OF_ORDER, TIMED_OUT, UNKNOWN_PID, FakePartition, near_the_wrap, new_manager


class TestInDoubt:
    def test_never_sent(self) -> None:
        """F testExpiryOfUnsentBatchesShouldNotCauseUnresolvedSequences: nothing is in doubt."""
        manager = new_manager()
        partition = FakePartition(manager)
        partition.give_up(partition.append(), TIMED_OUT, adjust=False)
        manager.begin_turn()
        assert not partition.sequences.unresolved and manager.producer_epoch == 0

    def test_later_batches_succeed(self) -> None:
        """F testExpiryOfFirstBatchShouldNotCauseUnresolvedSequencesIfFutureBatchesSucceed: the third waits."""
        manager = new_manager()
        partition = FakePartition(manager)
        first, second = partition.send(), partition.send()
        partition.refuse(first, KafkaTimeoutError())
        partition.refuse(second, DisconnectError())
        partition.give_up(first, TIMED_OUT, adjust=False)
        third = partition.append()
        assert partition.sequences.unresolved
        assert partition.drain() is second
        partition.ack(second, 1)
        assert partition.drain() is None, "in doubt until the next turn"
        manager.begin_turn()
        assert partition.drain() is third and third.stamp == (343434, 0, 2)

    def test_later_batches_fail(self) -> None:
        """F testExpiryOfFirstBatchShouldCauseEpochBumpIfFutureBatchesFail: the second finds the gap."""
        manager = new_manager()
        partition = FakePartition(manager)
        first, second = partition.send(), partition.send()
        partition.refuse(first, KafkaTimeoutError())
        partition.give_up(first, TIMED_OUT, adjust=False)
        third = partition.append()
        assert partition.refuse(second, OUT_OF_ORDER)
        assert partition.queue.batches == [second, third]
        manager.begin_turn()
        assert second.stamp == (343434, 1, 0) and not partition.sequences.unresolved
        assert partition.numbers == (1, -1)
        manager.begin_turn()
        assert manager.producer_epoch == 1

    def test_all_expire(self) -> None:
        """F testExpiryOfAllSentBatchesShouldCauseUnresolvedSequences: in doubt, then epoch 1."""
        manager = new_manager()
        partition = FakePartition(manager)
        batch = partition.send()
        partition.refuse(batch, NOT_LEADER)
        partition.give_up(batch, TIMED_OUT, adjust=False)
        assert partition.sequences.unresolved and manager.producer_epoch == 0
        manager.begin_turn()
        assert manager.producer_epoch == 1 and not partition.sequences.unresolved
        assert partition.send().stamp == (343434, 1, 0)

    def test_first_attempt_expires_in_flight(self) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        partition.give_up(partition.send(), TIMED_OUT, adjust=False)
        assert partition.sequences.unresolved
        manager.begin_turn()
        assert manager.producer_epoch == 1

    def test_what_is_settled_is_not_in_doubt(self) -> None:
        """G testBumpEpochAfterTimeoutWithoutPendingInflightRequests: a confirmed batch is not; a timed-out one is."""
        manager = new_manager(15, 5)
        partition = FakePartition(manager)
        first = partition.send()
        partition.ack(first, 500)
        manager.on_failed(first, TIMED_OUT, False)
        manager.begin_turn()
        assert partition.numbers == (1, 0) and manager.producer_epoch == 5
        partition.give_up(partition.send(), TIMED_OUT, adjust=False)
        assert partition.sequences.unresolved
        manager.begin_turn()
        assert manager.producer_epoch == 6 and not partition.sequences.unresolved

    def test_the_last_one_succeeds(self) -> None:
        """G testNoProducerIdResetAfterLastInFlightBatchSucceeds: sequence 3, same epoch."""
        manager = new_manager(13131, 1)
        partition = FakePartition(manager)
        first, second, third = [partition.send() for _ in range(3)]
        partition.give_up(first, TIMED_OUT, adjust=False)
        partition.give_up(second, TIMED_OUT, adjust=False)
        manager.begin_turn()
        assert partition.sequences.unresolved
        partition.ack(third, 502)
        manager.begin_turn()
        assert manager.producer_epoch == 1 and partition.numbers == (3, 2) and not partition.sequences.unresolved

    def test_the_last_one_fails(self) -> None:
        """G testEpochBumpAfterLastInflightBatchFails: first lost, second written, third lost."""
        manager = new_manager(13131, 1)
        partition = FakePartition(manager)
        first, second, third = [partition.send() for _ in range(3)]
        partition.give_up(first, TIMED_OUT, adjust=False)
        partition.ack(second, 1)
        partition.give_up(third, TIMED_OUT, adjust=False)
        manager.begin_turn()
        assert manager.producer_epoch == 2 and partition.numbers == (0, -1)

    def test_across_the_wrap(self) -> None:
        manager = new_manager()
        partition = near_the_wrap(manager, LAST)
        first, second = partition.send(), partition.send()
        partition.give_up(first, TIMED_OUT, adjust=False)
        partition.ack(second, 1)
        manager.begin_turn()
        assert manager.producer_epoch == 0 and partition.numbers == (1, 0)
        partition.give_up(partition.send(), TIMED_OUT, adjust=False)
        manager.begin_turn()
        assert manager.producer_epoch == 1

    def test_a_late_answer_settles_it(self) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        batch = partition.send()
        partition.give_up(batch, TIMED_OUT, adjust=False)
        partition.ack(batch, 0)
        manager.begin_turn()
        assert manager.producer_epoch == 0 and partition.send().base_sequence == 1

    def test_an_answer_from_an_older_epoch(self) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        batch = partition.send()
        partition.give_up(batch, TIMED_OUT, adjust=False)
        manager.begin_turn()
        new = partition.send()
        partition.ack(batch, 0)
        assert partition.numbers == (1, -1) and partition.sequences.is_lowest(new)


class TestAskedInTurn:
    """Out of order, and another is asked for: what else may be said to that one."""

    def test_refused_for_good_after_one_behind_it_was_confirmed(self) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        partition.ack(partition.send(), 0)
        first, second, third = partition.send(), partition.send(), partition.send()
        for batch in (first, second):
            partition.refuse(batch, DisconnectError())
        partition.refuse(third, NOT_LEADER)
        assert partition.drain() is first
        partition.refuse(first, OUT_OF_ORDER)
        assert partition.drain() is second
        partition.ack(second, 2)
        assert partition.drain() is third
        partition.give_up(third, RecordTooLargeError(), adjust=True)
        manager.begin_turn()
        assert first.stamp == (343434, 0, 1), "it is in the log"
        assert partition.drain() is first
        assert partition.refuse(first, OUT_OF_ORDER) and first.done
        manager.begin_turn()
        assert manager.producer_epoch == 1

    def test_the_producer_is_unknown(self) -> None:
        """Its records were deleted: all follow under the next epoch, in their order."""
        manager = new_manager()
        partition = FakePartition(manager)
        partition.ack(partition.send(), 0)
        batches = [partition.send() for _ in range(3)]
        for batch in batches:
            partition.refuse(batch, NOT_LEADER)
        for error in (OUT_OF_ORDER, UNKNOWN_PID, UNKNOWN_PID):
            asked = partition.drain()
            assert asked is not None
            partition.refuse(asked, error, 5)
            manager.begin_turn()
        assert [batch.stamp for batch in batches] == [(343434, 1, 0), (343434, 1, 1), (343434, 1, 2)]
        assert partition.queue.batches == batches

    def test_the_producer_is_unknown_for_now(self) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        partition.ack(partition.send(), 0)
        first, second = partition.send(), partition.send()
        partition.refuse(first, NOT_LEADER)
        partition.refuse(second, NOT_LEADER)
        assert partition.drain() is first
        partition.refuse(first, OUT_OF_ORDER)
        for _ in range(3):
            assert partition.drain() is second
            partition.refuse(second, UNKNOWN_PID, -1)
        manager.begin_turn()
        assert manager.producer_epoch == 0 and partition.sequences.is_lowest(second)
