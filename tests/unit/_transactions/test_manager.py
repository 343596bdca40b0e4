"""The idempotent producer's manager: the gate, answers out of order, what ends it, retries, splits."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from forebay._transactions.partitions import TransactionPartitions
from forebay._transactions.state import State
from forebay.errors import (
    ApiError,
    ClusterAuthorizationError,
    CorruptRecordError,
    KafkaError,
    KafkaTimeoutError,
    NotEnoughReplicasAfterAppendError,
    ProducerFencedError,
    RecordTooLargeError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
    UnsupportedVersionError,
)

from .fakes import (
    LAST,
    NOT_LEADER,
    OUT_OF_ORDER,
    TIMED_OUT,
    FakeBatch,
    FakePartition,
    near_the_wrap,
    new_manager,
)


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
        assert partition.refuse(first, KafkaTimeoutError()) and partition.drain() is first
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
        partition.give_up(first, RecordTooLargeError(), adjust=True)
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
        assert repr(manager.fatal_error) == repr(first)
        assert manager.fatal_error is not None and manager.fatal_error.fatal


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


class TestTopicMadeAgain:
    """Another incarnation of the topic: its logs know nothing of the producer."""

    def confirmed(self, *, confirm_first: bool = True, by_name: bool = False) -> FakePartition:
        partition = FakePartition(new_manager(confirm_first=confirm_first))
        partition.by_name = by_name
        for offset in range(2):
            partition.ack(partition.send(), offset)
        return partition

    def test_the_first_for_it_goes_alone(self) -> None:
        partition = self.confirmed()
        partition.incarnation = 1
        first = partition.send()
        second = partition.append()
        assert first.stamp == (343434, 0, 2), "the sequences go on"
        assert partition.drain() is None
        assert partition.refuse(first, NOT_LEADER) and partition.drain() is first and partition.drain() is None
        partition.ack(first, 0)
        assert partition.drain() is second
        assert partition.send() is not None

    def test_as_in_java_it_does_not(self) -> None:
        partition = self.confirmed(confirm_first=False)
        partition.incarnation = 1
        partition.send()
        assert partition.send().base_sequence == 3

    def test_not_while_the_old_log_owes_an_answer(self) -> None:
        partition = self.confirmed()
        old = partition.send()
        partition.incarnation = 1
        new, newer = partition.append(), partition.append()
        assert partition.drain() is None
        partition.ack(old, 2)
        assert partition.drain() is new, "the old log's answer confirms nothing here"
        assert partition.drain() is None
        partition.ack(new, 0)
        assert partition.drain() is newer

    def test_a_late_answer_of_the_old_log_confirms_nothing(self) -> None:
        partition = self.confirmed()
        expired = partition.send()
        partition.give_up(expired, TIMED_OUT, adjust=False)
        partition.manager.begin_turn()  # in doubt: the next epoch
        partition.incarnation = 1
        new = partition.send()
        assert new.stamp == (343434, 1, 0)
        partition.ack(expired, 2)
        partition.append()
        assert partition.drain() is None

    def test_what_waits_with_its_stamp_goes_first_and_in_order(self) -> None:
        partition = self.confirmed()
        batches = [partition.send() for _ in range(3)]
        new = partition.append()
        partition.incarnation = 1
        for batch in batches:
            assert partition.refuse(batch, UnknownTopicIdError())
        first, second, third = batches
        for batch in (first, second):
            assert partition.drain() is batch and partition.drain() is None
            partition.ack(batch)
        assert partition.drain() is third and partition.drain() is new, "one is confirmed: no more need to wait"
        assert partition.manager.producer_epoch == 0

    def overtaken(self, partition: FakePartition) -> tuple[FakeBatch, FakeBatch]:
        """The first of two was put off, the second taken; the first waits for its second try."""
        first, second = partition.send(), partition.send()
        assert partition.refuse(first, NOT_LEADER)
        partition.ack(second, 0)
        return first, second

    def test_what_the_new_log_refuses_as_overtaken_gets_another_stamp(self) -> None:
        partition = self.confirmed(by_name=True)
        first, _ = self.overtaken(partition)
        assert partition.drain() is first
        assert partition.refuse(first, OUT_OF_ORDER)
        partition.manager.begin_turn()
        assert partition.manager.producer_epoch == 0, "the same topic, as far as is known: it may be in the log"
        partition.incarnation = 1
        assert partition.drain() is first and first.base_sequence == 2
        assert partition.refuse(first, OUT_OF_ORDER)
        partition.manager.begin_turn()
        assert first.stamp == (343434, 1, 0)
        assert partition.drain() is first
        assert first.stamped_for == 1
        partition.ack(first, 1)
        assert partition.numbers == (1, 0)

    def test_under_its_new_stamp_it_is_one_like_any_other(self) -> None:
        """Overtaken once more, in the log that it was stamped for, it keeps what it has."""
        partition = self.confirmed(by_name=True)
        first, _ = self.overtaken(partition)
        partition.incarnation = 1
        partition.drain()
        partition.refuse(first, OUT_OF_ORDER)
        partition.manager.begin_turn()
        partition.drain()
        partition.sequences.acknowledge(FakeBatch(partition.queue), 1)
        first.set_producer_state(343434, 1, 0, False)
        later = FakeBatch(partition.queue)
        later.set_producer_state(343434, 1, 1, False)
        partition.sequences.acknowledge(later, 2)
        assert partition.refuse(first, OUT_OF_ORDER)
        partition.manager.begin_turn()
        assert partition.manager.producer_epoch == 1

    def test_others_that_may_be_in_the_new_log_are_settled_before(self) -> None:
        """Of three the first was put off, the second's fate is open, the third taken: no other stamp for the second."""
        partition = self.confirmed(by_name=True)
        first, second, third = (partition.send() for _ in range(3))
        partition.refuse(first, NOT_LEADER)
        partition.ack(third, 1)
        partition.refuse(second, NotEnoughReplicasAfterAppendError())
        new = partition.append()
        partition.incarnation = 1
        assert partition.drain() is first
        assert partition.refuse(first, OUT_OF_ORDER)
        assert partition.queue.batches == [second, first, new]
        partition.manager.begin_turn()
        assert partition.manager.producer_epoch == 0
        assert partition.drain() is second and second.base_sequence == 3 and partition.drain() is None
        partition.ack(second, 0)
        partition.manager.begin_turn()
        assert partition.drain() is first and first.stamp == (343434, 1, 0)
        assert partition.drain() is None
        partition.ack(first, 2)
        assert partition.drain() is new and new.stamp == (343434, 1, 1)

    def behind_one_of_the_old_log(self) -> tuple[FakePartition, FakeBatch, FakeBatch]:
        """By id: the new log has the first, and misses what only the old one got; then come an old and a new batch."""
        partition = self.confirmed()
        first, only_there, stray = (partition.send() for _ in range(3))
        partition.refuse(first, NotEnoughReplicasAfterAppendError())
        partition.ack(only_there, 3)
        partition.refuse(stray, UnknownTopicIdError())
        partition.incarnation = 1
        assert partition.drain() is first
        partition.ack(first, 0)
        assert partition.drain() is stray
        return partition, stray, partition.send()

    def test_by_id_what_comes_behind_does_not_overtake(self) -> None:
        partition, stray, new = self.behind_one_of_the_old_log()
        assert partition.refuse(stray, OUT_OF_ORDER) and partition.refuse(new, OUT_OF_ORDER)
        partition.manager.begin_turn()
        assert [partition.drain(), partition.drain()] == [stray, None]
        assert stray.stamp == (343434, 1, 0) and new.stamp == (343434, 1, 1)

    def test_by_id_a_third_log_may_begin_with_a_later_one(self) -> None:
        """Made again once more while the batches are asked for in turn: the one whose turn it is comes first there."""
        partition, stray, new = self.behind_one_of_the_old_log()
        assert partition.refuse(stray, NotEnoughReplicasAfterAppendError()) and partition.refuse(new, NOT_LEADER)
        assert partition.drain() is stray and partition.refuse(stray, OUT_OF_ORDER)
        partition.incarnation = 2
        assert partition.drain() is new
        partition.ack(new, 0)
        assert partition.drain() is stray and partition.refuse(stray, OUT_OF_ORDER)
        assert not stray.done, "the third log has nothing of it"
        partition.manager.begin_turn()
        assert partition.drain() is stray and stray.stamp == (343434, 1, 0)

    def test_by_id_what_is_before_one_that_the_new_log_has_is_there(self) -> None:
        """The new log took both and forgot the first, whose answer was lost."""
        partition = self.confirmed()
        first, stray = partition.send(), partition.send()
        for batch in (first, stray):
            partition.refuse(batch, UnknownTopicIdError())
        partition.incarnation = 1
        partition.ack(partition.drain() or stray, 0)
        assert partition.drain() is stray
        new = partition.send()
        partition.refuse(stray, NotEnoughReplicasAfterAppendError())
        partition.ack(new, 2)
        assert partition.drain() is stray and partition.refuse(stray, OUT_OF_ORDER)
        assert stray.done and partition.manager.producer_epoch == 0

    def test_parts_of_one_that_was_split_there(self) -> None:
        """Too large for the new log, which took what came behind: its parts are strays as it was."""
        partition = self.confirmed()
        large, second = partition.send(2), partition.send()
        partition.ack(second, 0)
        children = [FakeBatch(partition.queue), FakeBatch(partition.queue)]
        partition.manager.on_split(large, children)
        for child in reversed(children):
            partition.requeue(child)
        partition.incarnation = 1
        for child in children:
            assert partition.drain() is child and child.base_sequence >= 0
            assert partition.refuse(child, OUT_OF_ORDER)
        partition.manager.begin_turn()
        assert [child.stamp for child in partition.queue.batches] == [(343434, 1, 0), (343434, 1, 1)]
        assert partition.queue.batches == children

    def test_in_a_transaction_it_fails_and_the_transaction_with_it(self) -> None:
        manager = new_manager(confirm_first=True)
        members = TransactionPartitions()
        members.begin(True)
        failed: list[KafkaError] = []
        manager.begin_dialog(SimpleNamespace(on_failed_batch=failed.append), members)
        partition = FakePartition(manager)
        partition.ack(partition.send(), 0)
        first, _ = self.overtaken(partition)
        assert partition.drain() is first
        assert partition.refuse(first, OUT_OF_ORDER), "the same topic: it may be in the log"
        partition.incarnation = 1
        assert partition.drain() is first
        assert not partition.refuse(first, OUT_OF_ORDER)
        assert failed == [OUT_OF_ORDER] and members.damaged == [partition.sequences]
