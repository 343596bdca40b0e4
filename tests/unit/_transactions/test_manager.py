"""The idempotent producer's manager: id and epoch, the gate, retries, epoch bumps, sequences in doubt."""

from __future__ import annotations

from math import inf

import pytest

from forebay._backoff import ExponentialBackoff
from forebay._protocol.init_producer_id import InitProducerIdResponse
from forebay._transactions.manager import TransactionManager
from forebay._transactions.sequences import PartitionSequences
from forebay._transactions.state import State
from forebay.errors import (
    ApiError,
    AuthenticationError,
    ClusterAuthorizationError,
    CorruptRecordError,
    DisconnectError,
    InvalidProducerEpochError,
    KafkaError,
    NetworkError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    ProtocolError,
    RecordTooLargeError,
    TimeoutError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
    UnknownProducerIdError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
    UnsupportedVersionError,
)

from .fakes import NODE, FakeBatch, FakePartition, FakeQueue, give_id, new_manager

OUT_OF_ORDER = OutOfOrderSequenceError()
NOT_LEADER = NotLeaderOrFollowerError()
UNKNOWN_PID = UnknownProducerIdError()
TIMED_OUT = TimeoutError("Expiring 1 record(s)")
LOAD_IN_PROGRESS = 14
LAST = 2**31 - 1


def waiting_manager(initial: float = 50, maximum: float = 50) -> TransactionManager:
    return TransactionManager(ExponentialBackoff(initial, maximum, lambda: 0.5))


def answer(manager: TransactionManager, code: int, now: float) -> KafkaError | None:
    return manager.on_init_producer_id(InitProducerIdResponse(0, code, -1, -1), now, node=NODE)


class TestProducerId:
    def test_obtained(self) -> None:
        """F testInitProducerIdRequest: id 343434 and epoch 0, without a transactional id."""
        manager = waiting_manager()
        assert manager.needs_producer_id(0.0, False)
        assert manager.init_request().transactional_id is None
        assert manager.state is State.INITIALIZING and not manager.needs_producer_id(0.0, True)
        assert manager.on_init_producer_id(InitProducerIdResponse(0, 0, 343434, 0), 5.0, node=NODE) is None
        assert (manager.producer_id, manager.producer_epoch, manager.state) == (343434, 0, State.READY)
        assert not manager.needs_producer_id(1e9, True) and manager.time_to_next_request(5.0, True) == inf

    def test_nothing_drains_before(self) -> None:
        manager = waiting_manager()
        partition = FakePartition(manager)
        partition.append()
        assert partition.drain() is None
        give_id(manager, 1)
        assert partition.drain() is not None

    def test_retried_with_backoff(self) -> None:
        """F testSenderShouldRetryWithBackoffOnRetriableError: each request 50 ms after the one before."""
        manager = waiting_manager()
        now = 1000.0
        for _ in range(2):
            manager.init_request()
            assert answer(manager, LOAD_IN_PROGRESS, now) is None
            assert not manager.needs_producer_id(now + 49.9, True)
            assert manager.time_to_next_request(now, True) == 50
            now += 50
            assert manager.needs_producer_id(now, True)
        give_id(manager, 7, now=now)
        assert manager.producer_id == 7

    def test_backoff_grows(self) -> None:
        manager = waiting_manager(100, 1000)
        waits = []
        for _ in range(5):
            manager.init_request()
            answer(manager, LOAD_IN_PROGRESS, 0.0)
            waits.append(manager.time_to_next_request(0.0, True))
        assert waits == pytest.approx([100, 200, 400, 800, 1000])

    @pytest.mark.parametrize("error", [DisconnectError(), TIMED_OUT, NetworkError()])
    def test_lost_answers_are_retried(self, error: KafkaError) -> None:
        manager = waiting_manager()
        manager.init_request()
        assert manager.on_init_producer_id(error, 0.0, node=NODE) is None
        assert manager.state is State.INITIALIZING and manager.needs_producer_id(50.0, True)

    def test_not_authorized(self) -> None:
        """F testClusterAuthorizationExceptionInInitProducerIdRequest: batches fail, then it is tried again."""
        manager = waiting_manager()
        manager.init_request()
        error = answer(manager, ClusterAuthorizationError.code or 0, 0.0)
        assert isinstance(error, ClusterAuthorizationError) and NODE in str(error)
        assert manager.state is State.UNINITIALIZED and manager.fatal_error is None
        assert not manager.needs_producer_id(49.0, True)
        assert not manager.needs_producer_id(1e9, False), "nobody waits for it"
        assert manager.needs_producer_id(50.0, True)
        give_id(manager, 5, now=50.0)
        assert FakePartition(manager).send().producer_id == 5

    def test_old_broker(self) -> None:
        """G testUnsupportedInitTransactions: fatal, and the message names the broker and the remedy."""
        manager = waiting_manager()
        manager.init_request()
        error = manager.on_init_producer_id(UnsupportedVersionError("The broker does not support it"), 0.0, node=NODE)
        assert isinstance(error, UnsupportedVersionError) and manager.fatal_error is error
        assert NODE in str(error) and "enable.idempotence" in str(error)
        assert manager.state is State.FATAL_ERROR and not manager.needs_producer_id(1e9, True)

    @pytest.mark.parametrize("error", [AuthenticationError("no"), ProtocolError("no"), ProducerFencedError()])
    def test_fatal(self, error: KafkaError) -> None:
        manager = waiting_manager()
        manager.init_request()
        assert manager.on_init_producer_id(error, 0.0, node=NODE) is error
        assert manager.fatal_error is error

    def test_an_answer_without_an_id(self) -> None:
        manager = waiting_manager()
        manager.init_request()
        error = answer(manager, 0, 0.0)
        assert isinstance(error, ProtocolError) and NODE in str(error) and manager.fatal_error is error

    def test_an_answer_after_the_end(self) -> None:
        manager = waiting_manager()
        manager.init_request()
        manager.fail(ProtocolError("gone"))
        assert manager.on_init_producer_id(InitProducerIdResponse(0, 0, 1, 0), 0.0, node=NODE) is None
        assert manager.producer_id == -1


class TestGate:
    def test_sequences_follow_the_drains(self) -> None:
        partition = FakePartition(new_manager())
        first, second = partition.send(2), partition.send(3)
        assert (first.stamp, second.stamp) == ((343434, 0, 0), (343434, 0, 2))
        assert partition.numbers == (5, -1)

    def test_partitions_are_apart(self) -> None:
        manager = new_manager()
        one, other = FakePartition(manager, 0), FakePartition(manager, 1)
        one.send(4)
        assert other.send().base_sequence == 0

    def test_a_retry_keeps_its_stamp(self) -> None:
        partition = FakePartition(new_manager())
        batch = partition.send(2)
        stamp = batch.stamp
        assert partition.refuse(batch, NOT_LEADER) and partition.drain() is batch
        assert batch.stamp == stamp and partition.numbers == (2, -1)

    def test_only_the_lowest_is_retried(self) -> None:
        partition = FakePartition(new_manager())
        first, second = partition.send(), partition.send()
        partition.refuse(second, OUT_OF_ORDER)
        assert partition.drain() is None
        partition.ack(first)
        assert partition.drain() is second

    def test_five_in_flight(self) -> None:
        partition = FakePartition(new_manager())
        batches = [partition.send() for _ in range(5)]
        partition.append()
        assert partition.drain() is None
        partition.ack(batches[2])
        assert partition.drain() is None, "the lowest is still unconfirmed"
        partition.ack(batches[0])
        assert partition.drain() is not None

    def test_the_first_goes_alone(self) -> None:
        manager = new_manager(confirm_first=True)
        partition = FakePartition(manager)
        first = partition.send()
        second = partition.append()
        assert partition.drain() is None
        assert partition.refuse(first, NOT_LEADER) and partition.drain() is first and partition.drain() is None
        partition.ack(first, 0)
        assert partition.drain() is second
        third = partition.send()
        assert partition.sequences.in_flight == [second, third]

    def test_the_first_of_an_epoch_goes_alone(self) -> None:
        manager = new_manager(confirm_first=True)
        partition = FakePartition(manager)
        partition.ack(partition.send(), 0)
        partition.give_up(partition.send(), RecordTooLargeError(), adjust=True)
        manager.begin_turn()
        assert partition.send().stamp == (343434, 1, 0)
        partition.append()
        assert partition.drain() is None

    def test_order_of_requeued_batches(self) -> None:
        partition = FakePartition(new_manager())
        batches = [partition.send() for _ in range(4)]
        new = partition.append()
        for index in (2, 0, 3, 1):
            partition.refuse(batches[index], NOT_LEADER)
        assert partition.queue.batches == [*batches, new]

    def test_order_across_the_wrap(self) -> None:
        """O10 wrap-around: re-enqueued in the order of their stamps, not of the bare numbers."""
        manager = new_manager()
        partition = near_the_wrap(manager, LAST - 1)
        batches = [partition.send() for _ in range(4)]
        for index in (3, 1, 2, 0):
            partition.refuse(batches[index], NOT_LEADER)
        assert [batch.base_sequence for batch in partition.queue.batches] == [LAST - 1, LAST, 0, 1]
        for batch in batches:
            assert partition.drain() is batch
            partition.ack(batch)
        assert partition.numbers == (2, 1)

    def test_a_queue_that_was_let_go(self) -> None:
        manager = new_manager()
        old = FakePartition(manager)
        old.ack(old.send(3))
        manager.park(old.queue)
        assert old.queue.gate_state is None
        new = FakePartition(manager)
        assert new.send().base_sequence == 3

    def test_parking_what_was_never_used(self) -> None:
        manager = new_manager()
        manager.park(FakeQueue())
        assert FakePartition(manager).send().base_sequence == 0


def near_the_wrap(manager: TransactionManager, next_sequence: int) -> FakePartition:
    partition = FakePartition(manager)
    partition.queue.gate_state = PartitionSequences("test", 0, False)
    partition.sequences.start(manager.producer_id, manager.producer_epoch, next_sequence)
    return partition


class TestOutOfOrderAnswers:
    def test_second_refused_first(self) -> None:
        """F testCorrectHandlingOfOutOfOrderResponses: both wait in order and go out one at a time."""
        partition = FakePartition(new_manager())
        first, second = partition.send(), partition.send()
        assert partition.refuse(second, OUT_OF_ORDER)
        assert partition.refuse(first, NOT_LEADER)
        assert partition.queue.batches == [first, second]
        assert partition.drain() is first and partition.drain() is None
        partition.ack(first, 0)
        assert partition.drain() is second
        partition.ack(second, 1)
        assert partition.numbers == (2, 1) and partition.sequences.last_acked_offset == 1

    def test_second_succeeds_first(self) -> None:
        """F testCorrectHandlingOfOutOfOrderResponsesWhenSecondSucceeds: the late first does not turn numbers back."""
        partition = FakePartition(new_manager())
        first, second = partition.send(), partition.send()
        partition.ack(second, 1)
        assert partition.numbers == (2, 1)
        assert partition.refuse(first, TimeoutError()) and partition.drain() is first
        assert first.base_sequence == 0
        partition.ack(first, 0)
        assert partition.numbers == (2, 1) and partition.sequences.last_acked_offset == 1

    def test_duplicate_is_success(self) -> None:
        """F testCorrectHandlingOfDuplicateSequenceError: confirmed without an offset."""
        partition = FakePartition(new_manager())
        first, second = partition.send(), partition.send()
        partition.ack(second, 1000)
        partition.ack(first, -1)
        assert partition.numbers == (2, 1) and partition.sequences.last_acked_offset == 1000

    def test_what_was_overtaken_keeps_its_stamp(self) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        first, second = partition.send(), partition.send()
        partition.ack(second, 1)
        assert partition.refuse(first, OUT_OF_ORDER)
        manager.begin_turn()
        assert manager.producer_epoch == 0 and first.base_sequence == 0


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
        partition.refuse(first, OUT_OF_ORDER)
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
        partition.refuse(first, TimeoutError())
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
        partition.refuse(first, TimeoutError())
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


class TestFatal:
    @pytest.mark.parametrize(
        "error",
        [
            ClusterAuthorizationError(),
            UnsupportedVersionError(),
            ProducerFencedError(),
            TransactionalIdAuthorizationError(),
        ],
    )
    def test_produce_refused(self, error: KafkaError) -> None:
        """F testClusterAuthorizationExceptionInProduceRequest testUnsupportedVersionInProduceRequest
        testCancelInFlightRequestAfterFatalError: the producer ends; what is in flight is told the same."""
        manager = new_manager()
        tp0, tp1 = FakePartition(manager, 0), FakePartition(manager, 1)
        b0, b1 = tp0.send(), tp1.send()
        assert not tp0.refuse(b0, error)
        assert manager.fatal_error is error and manager.state is State.FATAL_ERROR
        tp1.append()
        assert tp1.drain() is None
        tp1.give_up(b1, error, adjust=False)
        tp1.ack(b1, 0)  # a late success is harmless
        assert manager.fatal_error is error

    @pytest.mark.parametrize("error", [TopicAuthorizationError(), UnsupportedForMessageFormatError()])
    def test_not_fatal(self, error: KafkaError) -> None:
        """F testUnsupportedForMessageFormatInProduceRequest: only the batch fails."""
        manager = new_manager()
        partition = FakePartition(manager)
        assert not partition.refuse(partition.send(), error)
        assert manager.fatal_error is None
        manager.begin_turn()
        assert partition.send().stamp == (343434, 1, 0)

    def test_no_bump_after_the_end(self) -> None:
        """G testNoFailedBatchHandlingWhenTxnManagerIsInFatalError: epoch 6 stays."""
        manager = new_manager(15, 5)
        partition = FakePartition(manager)
        first, second = partition.send(), partition.send()
        partition.give_up(first, OUT_OF_ORDER, adjust=False)
        manager.begin_turn()
        assert manager.producer_epoch == 6
        manager.fail(KafkaError("the end"))
        partition.give_up(second, OUT_OF_ORDER, adjust=True)
        manager.begin_turn()
        assert manager.producer_epoch == 6

    def test_the_first_error_stays(self) -> None:
        manager = new_manager()
        first = KafkaError("first")
        manager.fail(first)
        manager.fail(KafkaError("second"))
        assert manager.fatal_error is first


class TestCanRetry:
    @pytest.mark.parametrize("error", [NOT_LEADER, CorruptRecordError(), UnknownTopicOrPartitionError(), TIMED_OUT])
    def test_retriable(self, error: KafkaError) -> None:
        manager = new_manager()
        assert manager.can_retry(FakePartition(manager).send(), error, -1)

    @pytest.mark.parametrize("error", [TopicAuthorizationError(), RecordTooLargeError(), ApiError("unknown")])
    def test_final(self, error: KafkaError) -> None:
        manager = new_manager()
        assert not manager.can_retry(FakePartition(manager).send(), error, -1)


class TestSplit:
    def test_children_take_the_sequences(self) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        large, following = partition.send(3), partition.send()
        children = [FakeBatch(partition.queue, 2), FakeBatch(partition.queue, 1)]
        manager.on_split(large, children)
        for child in reversed(children):
            partition.requeue(child)
        partition.refuse(following, OUT_OF_ORDER)
        assert partition.queue.batches == [*children, following]
        assert [batch.base_sequence for batch in partition.queue.batches] == [0, 2, 3]
        for batch in (*children, following):
            assert partition.drain() is batch
            partition.ack(batch)
        assert partition.numbers == (4, 3)

    def test_without_a_sequence(self) -> None:
        manager = new_manager()
        partition = FakePartition(manager)
        child = FakeBatch(partition.queue)
        manager.on_split(partition.append(2), [child])
        assert child.base_sequence == -1
