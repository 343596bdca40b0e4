"""Epoch bumps: what is numbered anew, what keeps its stamp, and a new id after the last epoch."""

from __future__ import annotations

import pytest

from forebay.errors import DisconnectError, InvalidProducerEpochError, KafkaError, RecordTooLargeError

from .fakes import NOT_LEADER, OUT_OF_ORDER, UNKNOWN_PID, FakePartition, give_id, new_manager


class TestEpochBump:
    def test_first_batch_out_of_order(self) -> None:
        """F testBumpEpochWhenOutOfOrderSequenceReceived: retried under epoch 1."""
        manager = new_manager()
        partition = FakePartition(manager)
        batch = partition.send()
        assert partition.refuse(batch, OUT_OF_ORDER)
        assert manager.producer_epoch == 0, "not before the next turn"
        manager.begin_turn()
        assert manager.producer_epoch == 1 and batch.stamp == (343434, 1, 0)
        assert partition.drain() is batch

    def test_next_batch_out_of_order(self) -> None:
        """F testEpochBumpOnOutOfOrderSequenceForNextBatch: nothing confirmed lies ahead, so there is a gap."""
        manager = new_manager()
        partition = FakePartition(manager)
        partition.ack(partition.send(2), 0)
        assert partition.numbers == (2, 1)
        second = partition.send()
        assert partition.refuse(second, OUT_OF_ORDER)
        manager.begin_turn()
        assert second.stamp == (343434, 1, 0)
        assert partition.drain() is second
        assert partition.numbers == (1, -1) and partition.sequences.is_lowest(second)

    def test_the_other_partition_finishes_first(self) -> None:
        """F testEpochBumpOnOutOfOrderSequenceForNextBatchWhenBatchInFlightFails: it ends under its old epoch."""
        manager = new_manager()
        tp0, tp1 = FakePartition(manager, 0), FakePartition(manager, 1)
        tp0.ack(tp0.send(), 0)
        tp1.ack(tp1.send(), 0)
        b0, b1 = tp0.send(), tp1.send()
        tp0.refuse(b0, OUT_OF_ORDER)
        manager.begin_turn()
        assert b0.stamp == (343434, 1, 0) and b1.stamp == (343434, 0, 1)
        tp1.refuse(b1, NOT_LEADER)
        assert tp1.drain() is b1 and b1.producer_epoch == 0
        tp1.give_up(b1, NOT_LEADER, adjust=False)  # retries exhausted
        manager.begin_turn()
        assert manager.producer_epoch == 1, "it starts anew under epoch 1 anyway"
        assert tp1.send().stamp == (343434, 1, 0)
        assert tp0.drain() is b0
        tp0.ack(b0, 1)
        assert tp0.send().stamp == (343434, 1, 1)

    def test_a_healthy_partition(self) -> None:
        """G testHealthyPartitionRetriesDuringEpochBump testFailedInflightBatchAfterEpochBump: tp1 goes on unchanged."""
        manager = new_manager(13131, 1)
        tp0, tp1 = FakePartition(manager, 0), FakePartition(manager, 1)
        tp0.ack(tp0.send(), 500)
        tp1.ack(tp1.send(), 500)
        b0, b1 = tp0.send(), tp1.send()
        assert tp0.refuse(b0, UNKNOWN_PID, 500)
        manager.begin_turn()
        assert b0.stamp == (13131, 2, 0) and tp0.sequences.was_rewritten(b0)
        assert b1.stamp == (13131, 1, 1) and not tp1.sequences.was_rewritten(b1)
        new = tp1.append()
        assert tp1.drain() is None, "not before the old epoch's batch is through"
        assert tp1.refuse(b1, NOT_LEADER) and tp1.drain() is b1
        assert b1.stamp == (13131, 1, 1)
        tp1.ack(b1, 501)
        assert tp1.drain() is new and new.stamp == (13131, 2, 0)
        assert tp1.numbers == (1, -1)

    def test_old_id_succeeds_on_a_later_retry(self) -> None:
        """F testBatchesDrainedWithOldProducerIdShouldSucceedOnSubsequentRetry: two NOT_LEADER, then success."""
        manager = new_manager()
        tp0, tp1 = FakePartition(manager, 0), FakePartition(manager, 1)
        b0, b1 = tp0.send(), tp1.send()
        tp0.refuse(b0, OUT_OF_ORDER)
        manager.begin_turn()
        for _ in range(2):
            assert tp1.refuse(b1, NOT_LEADER) and tp1.drain() is b1
        assert b1.stamp == (343434, 0, 0)
        tp1.ack(b1, 3)
        assert tp1.numbers == (1, 0)

    def test_unknown_producer_id(self) -> None:
        """G testBumpEpochAndResetSequenceNumbersAfterUnknownProducerId: four of five get sequences 0 to 3."""
        manager = new_manager(13131, 1)
        partition = FakePartition(manager)
        first, *rest = [partition.send() for _ in range(5)]
        assert partition.numbers == (5, -1)
        partition.ack(first, 500)
        assert partition.refuse(rest[0], UNKNOWN_PID, 500)
        manager.begin_turn()
        assert [batch.stamp for batch in rest] == [(13131, 2, sequence) for sequence in range(4)]
        assert partition.numbers == (4, -1)

    @pytest.mark.parametrize("log_start", [1010, 10])
    def test_unknown_producer_id_with_log_start(self, log_start: int) -> None:
        """F testIdempotentUnknownProducerHandlingWhenRetentionLimitReached
        testShouldRaiseOutOfOrderSequenceExceptionToUserIfLogWasNotTruncated: a new epoch, truncated or not."""
        manager = new_manager()
        partition = FakePartition(manager)
        partition.ack(partition.send(), 1000)
        batch = partition.send(2)
        assert partition.refuse(batch, UNKNOWN_PID, log_start)
        assert partition.sequences.last_acked_sequence == 0
        manager.begin_turn()
        assert batch.stamp == (343434, 1, 0) and partition.numbers == (2, -1)
        assert partition.drain() is batch
        partition.ack(batch, 1011)
        assert partition.numbers == (2, 1) and partition.sequences.last_acked_offset == 1012

    def test_unknown_log_start(self) -> None:
        """F testUnknownProducerErrorShouldBeRetriedWhenLogStartOffsetIsUnknown: sent again as it is."""
        manager = new_manager()
        partition = FakePartition(manager)
        partition.ack(partition.send(), 1000)
        batch = partition.send()
        assert partition.refuse(batch, UNKNOWN_PID, -1)
        manager.begin_turn()
        assert partition.drain() is batch and batch.stamp == (343434, 0, 1)

    def test_answers_about_old_stamps(self) -> None:
        """F testUnknownProducerErrorShouldBeRetriedForFutureBatchesWhenFirstFails: one bump for both."""
        manager = new_manager()
        partition = FakePartition(manager)
        partition.ack(partition.send(), 1000)
        second, third = partition.send(), partition.send()
        partition.refuse(second, UNKNOWN_PID, 1010)
        manager.begin_turn()
        assert partition.drain() is second and second.stamp == (343434, 1, 0)
        assert partition.refuse(third, UNKNOWN_PID, 1010)
        manager.begin_turn()
        assert third.stamp == (343434, 1, 1) and partition.drain() is None
        partition.ack(second, 1011)
        assert partition.drain() is third
        partition.ack(third, 1012)
        assert manager.producer_epoch == 1 and partition.numbers == (2, 1)

    @pytest.mark.parametrize("error", [OUT_OF_ORDER, InvalidProducerEpochError()])
    def test_refused_under_the_old_stamp(self, error: KafkaError) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        first, second = partition.send(), partition.send()
        partition.refuse(first, UNKNOWN_PID, 0)
        manager.begin_turn()
        assert partition.refuse(second, error)
        manager.begin_turn()
        assert manager.producer_epoch == 1 and second.stamp == (343434, 1, 1)

    def test_new_batches_follow_the_rewritten_ones(self) -> None:
        partition = FakePartition(manager := new_manager())
        first, second = partition.send(), partition.send()
        partition.give_up(first, RecordTooLargeError(), adjust=True)
        third = partition.append()
        manager.begin_turn()
        assert second.stamp == (343434, 1, 0) and partition.drain() is None
        partition.refuse(second, OUT_OF_ORDER)
        assert partition.drain() is second and partition.drain() is third

    def test_written_under_the_old_stamp(self) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        first, second, third = partition.send(), partition.send(), partition.send()
        partition.give_up(first, RecordTooLargeError(), adjust=True)
        manager.begin_turn()
        assert (second.base_sequence, third.base_sequence) == (0, 1)
        partition.ack(second, 7)
        manager.begin_turn()
        assert third.stamp == (343434, 2, 0), "the broker does not wait for sequence 1"

    def test_an_old_epoch_ends_the_batch(self) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        assert not partition.refuse(partition.send(), InvalidProducerEpochError())
        manager.begin_turn()
        assert manager.producer_epoch == 1

    def test_refused_records_leave_a_gap(self) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        first, second = partition.send(), partition.send()
        assert not partition.refuse(first, RecordTooLargeError())
        assert partition.refuse(second, OUT_OF_ORDER)
        manager.begin_turn()
        assert second.stamp == (343434, 1, 0) and partition.drain() is second

    def test_batches_ahead_of_the_gap_are_settled_first(self) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        first, second, third = partition.send(), partition.send(), partition.send()
        partition.refuse(first, DisconnectError())  # it may have been written
        partition.give_up(second, RecordTooLargeError(), adjust=True)
        manager.begin_turn()
        assert first.stamp == (343434, 0, 0), "a new stamp could write it twice"
        partition.append()
        assert partition.drain() is first and partition.drain() is None
        partition.ack(first, 0)
        manager.begin_turn()
        assert third.stamp == (343434, 1, 0)

    def test_several_partitions_share_a_bump(self) -> None:
        manager = new_manager()
        partitions = [FakePartition(manager, number) for number in range(3)]
        batches = [partition.send() for partition in partitions]
        for partition, batch in zip(partitions, batches, strict=True):
            partition.refuse(batch, OUT_OF_ORDER)
        manager.begin_turn()
        assert [batch.stamp for batch in batches] == [(343434, 1, 0)] * 3


class TestLastEpoch:
    def test_only_who_asked_starts_anew(self) -> None:
        """G testProducerIdReset: sequence 0 for tp0, still 3 for tp1, which waits for nothing."""
        manager = new_manager(15, 32767)
        tp0, tp1 = FakePartition(manager, 0), FakePartition(manager, 1)
        for partition in (tp0, tp1):
            partition.ack(partition.send(3), 0)
        batch = tp0.send()
        tp0.give_up(batch, RecordTooLargeError(), adjust=True)
        manager.begin_turn()
        assert manager.producer_id == -1 and manager.needs_producer_id(0.0, False)
        give_id(manager, 16)
        assert tp0.numbers == (0, -1) and tp1.numbers == (3, 2)
        assert tp1.send().stamp == (16, 0, 0)

    def test_batches_in_flight(self) -> None:
        """G testBatchFailureAfterProducerReset: tp0's batch starts anew, tp1's ends under the old id."""
        manager = new_manager(15, 32767)
        tp0, tp1 = FakePartition(manager, 0), FakePartition(manager, 1)
        tp0.ack(tp0.send(), 500)
        tp1.ack(tp1.send(), 500)
        b0, b1 = tp0.send(), tp1.send()
        assert tp0.refuse(b0, UNKNOWN_PID, 400)
        manager.begin_turn()
        assert b0.stamp == (15, 32767, 1), "no stamp without an id"
        assert tp0.drain() is None
        give_id(manager, 16)
        assert b0.stamp == (16, 0, 0) and tp0.numbers == (1, -1)
        assert b1.stamp == (15, 32767, 1) and tp1.numbers == (2, 0)

    def test_queued_batches_drain_afterwards(self) -> None:
        """F testResetOfProducerStateShouldAllowQueuedBatchesToDrain: tp1 retries under its old id."""
        manager = new_manager(343434, 32767)
        tp0, tp1 = FakePartition(manager, 0), FakePartition(manager, 1)
        b0, b1 = tp0.send(), tp1.send()
        tp0.refuse(b0, OUT_OF_ORDER)
        tp1.refuse(b1, NOT_LEADER)
        manager.begin_turn()
        give_id(manager, 343435)
        assert tp1.drain() is b1 and b1.producer_id == 343434
        tp1.ack(b1, 10)
        assert tp1.numbers == (1, 0)

    def test_the_request_is_retried_under_the_new_id(self) -> None:
        """F testRetryWhenProducerIdChanges: one in flight, next sequence 1."""
        manager = new_manager(343434, 32767)
        partition = FakePartition(manager)
        batch = partition.send()
        partition.refuse(batch, OUT_OF_ORDER)
        manager.begin_turn()
        give_id(manager, 343435)
        assert partition.drain() is batch and batch.stamp == (343435, 0, 0)
        assert partition.numbers == (1, -1) and len(partition.sequences.in_flight) == 1
