"""Checks of Java's transaction manager that no other module has: who may send when, and how what is under way ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from forebay._transactions.state import State
from forebay.errors import (
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    TopicAuthorizationError,
)
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from tests.fakes.answers import held, reply
from tests.fakes.broker import INIT_PRODUCER_ID, PRODUCE
from tests.fakes.coordinator import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    END_TXN,
    FIND_COORDINATOR,
    OFFSET_COMMIT,
    TransactionalWorld,
)
from tests.fakes.produce import Answer
from tests.fakes.waiting import meanwhile

NOT_LEADER, NOT_COORDINATOR, TOPIC_AUTHORIZATION, INVALID_TXN_STATE, UNKNOWN_ID = 6, 16, 29, 48, 59
GROUP = ConsumerGroupMetadata("myConsumerGroup", 5, "member", "instance")
OFFSETS = {TopicPartition("test", 0): OffsetAndMetadata(7)}
BOTH = pytest.mark.parametrize("version", [1, 2])


# -- who may send ----------------------------------------------------------------------------------------------


@BOTH
def test_after_a_fatal_error_nothing_is_taken(version: int) -> None:
    """G testFailIfNotReadyForSendAfterFatalError, testNotReadyForSendAfterFatalError: the error is the cause."""
    world = TransactionalWorld(version)
    world.begin()
    cause = KafkaError("the end")
    world.session.dialog.fatal(cause)
    for call in (world.send, world.session.begin, world.session.commit, world.session.abort):
        with pytest.raises(KafkaError, match="error state") as caught:
            call()
        assert isinstance(caught.value.__cause__, KafkaError) and "the end" in str(caught.value.__cause__)


@BOTH
def test_after_an_abortable_error_nothing_is_taken_until_the_abort(version: int) -> None:
    """G testFailIfNotReadyForSendAfterAbortableError, testNotReadyForSendAfterAbortableError."""
    world = TransactionalWorld(version)
    world.begin()
    world.session.dialog.abortable(KafkaError("for now"))
    for call in (world.send, world.session.begin, world.session.commit):
        with pytest.raises(KafkaError, match="error state") as caught:
            call()
        assert "for now" in str(caught.value.__cause__)
    world.abort()
    world.begin()
    world.send()
    world.commit()
    assert world.committed() == [b"v"]


@BOTH
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_transaction_is_open_until_its_end_is_answered(version: int, end: str) -> None:
    """G testHasOngoingTransactionSuccessfulAbort, testHasOngoingTransactionSuccessfulCommit."""
    world = TransactionalWorld(version, ready=False)
    assert not world.session.dialog.open
    world.finish(world.session.initialize())
    assert not world.session.dialog.open
    world.begin()
    assert world.session.dialog.open
    world.send()
    world.settle(12)
    assert world.session.dialog.open
    world.cluster.brokers[0].held.add(END_TXN)
    result = getattr(world.session, end)()
    world.settle(12)
    assert world.session.dialog.open and not result.done
    world.cluster.brokers[0].release()
    world.finish(result)
    assert not world.session.dialog.open


@BOTH
def test_a_transaction_in_error(version: int) -> None:
    """G testHasOngoingTransactionAbortableError, testHasOngoingTransactionFatalError: still open; over."""
    world = TransactionalWorld(version)
    world.begin()
    world.send()
    world.settle(12)
    world.session.dialog.abortable(KafkaError("for now"))
    assert world.session.dialog.open
    world.session.dialog.fatal(KafkaError("for good"))
    assert not world.session.dialog.open


def test_a_partition_is_added_once() -> None:
    """G testMaybeAddPartitionToTransaction, H testPartitionAddedToTransaction: nothing is written before the answer."""
    world = TransactionalWorld(1)
    world.begin()
    world.cluster.brokers[0].held.add(ADD_PARTITIONS)
    futures = [world.send(b"1")]
    world.settle(4)
    (request,) = world.cluster.brokers[0].waiting
    (topic,) = request.body.v3_and_below_topics
    assert (topic.name, list(topic.partitions)) == ("test", [0])
    assert world.cluster.requests() == []
    world.cluster.brokers[0].release()
    world.settle(12)
    for value in (b"2", b"3"):
        futures.append(world.send(value))
        world.settle(12)
    assert world.coordinator.names().count("add") == 1
    assert [future.result(0).offset for future in futures] == [0, 1, 2]


def test_only_partitions_with_records_are_added() -> None:
    """H testPartitionAddedToTransactionAfterFullBatchRetry: a full batch's successor chose another partition."""
    world = TransactionalWorld(1, batch_size=200)
    world.begin()
    futures = [world.send(bytes(150), partition=None) for _ in range(6)]
    world.settle(20)
    written = {("test", future.result(0).partition) for future in futures}
    added = {
        (topic.name, partition)
        for request in world.coordinator.of(ADD_PARTITIONS)
        for topic in request.body.v3_and_below_topics
        for partition in topic.partitions
    }
    assert added == written
    world.commit()


# -- what is sent in an error state ----------------------------------------------------------------------------


@pytest.mark.parametrize("fatal", [False, True])
def test_partitions_that_are_not_added_yet_are_never_written_after_an_error(fatal: bool) -> None:
    """G testIsSendToPartitionAllowedWithPendingPartitionAfterAbortableError,
    testIsSendToPartitionAllowedWithInFlightPartitionAddAfterAbortableError,
    testIsSendToPartitionAllowedWithPendingPartitionAfterFatalError,
    testIsSendToPartitionAllowedWithInFlightPartitionAddAfterFatalError,
    testIsSendToPartitionAllowedWithPartitionNotAdded: one in flight, one in line behind it, none of them is sent.
    """
    world = TransactionalWorld(1)
    world.begin()
    world.cluster.brokers[0].held.add(ADD_PARTITIONS)
    futures = [world.send(partition=0)]
    world.settle(4)
    futures.append(world.send(partition=1))
    world.settle(2)
    (world.session.dialog.fatal if fatal else world.session.dialog.abortable)(KafkaError("no more"))
    world.settle(4)
    world.cluster.brokers[0].release()
    world.settle(12)
    assert world.cluster.requests() == []
    if not fatal:
        world.abort()
    assert all(isinstance(future.exception(0), KafkaError) for future in futures)


@BOTH
def test_what_is_under_way_goes_on_after_an_abortable_error(version: int) -> None:
    """G testIsSendToPartitionAllowedWithAddedPartitionAfterAbortableError, testAllowDrainInAbortableErrorState,
    resendFailedProduceRequestAfterAbortableError: NOT_LEADER, then the error, then it is written all the same.
    """
    world = TransactionalWorld(version)
    world.begin()
    world.cluster.fail("test", 0, NOT_LEADER)
    future = world.send(b"again")
    world.until(lambda: bool(world.cluster.requests()), step=1)
    world.settle(2)
    world.session.dialog.abortable(KafkaError("from elsewhere"))
    world.run(300)
    assert future.result(0).offset == 0
    assert world.session.dialog.state is State.ABORTABLE_ERROR
    world.abort()
    assert world.coordinator.names()[-1] == "end"
    assert world.coordinator.aborted["test", 0] == [b"again"]


@BOTH
def test_nothing_goes_on_after_a_fatal_error(version: int) -> None:
    """G testIsSendToPartitionAllowedWithAddedPartitionAfterFatalError: the retry is not made."""
    world = TransactionalWorld(version)
    world.begin()
    world.cluster.fail("test", 0, NOT_LEADER)
    future = world.send(b"again")
    world.until(lambda: bool(world.cluster.requests()), step=1)
    world.settle(2)
    world.session.dialog.fatal(KafkaError("the end"))
    world.run(300)
    assert isinstance(future.exception(0), KafkaError)
    assert len(world.cluster.requests()) == 1


# -- errors on the way ---------------------------------------------------------------------------------------


def test_a_topic_is_forbidden_while_the_commit_waits() -> None:
    """G testCommitWithTopicAuthorizationFailureInAddPartitionsInFlight: the commit fails with it, and both records."""
    world = TransactionalWorld(1)
    world.begin()
    futures = [world.send(partition=partition) for partition in (0, 1)]
    world.coordinator.fail(ADD_PARTITIONS, {("test", 0): TOPIC_AUTHORIZATION, ("test", 1): 55})
    result = world.session.commit()
    with pytest.raises(TopicAuthorizationError):
        world.finish(result)
    world.settle()
    assert all(isinstance(future.exception(0), KafkaError) for future in futures)
    assert world.session.dialog.state is State.ABORTABLE_ERROR
    world.abort()
    assert world.committed(0) == world.committed(1) == []


def test_a_transaction_that_has_begun_is_aborted_by_the_coordinator() -> None:
    """G testRecoveryFromAbortableErrorTransactionStarted: tp0 is in it, tp1 is refused: EndTxn, and the next works."""
    world = TransactionalWorld(1)
    world.begin()
    first = world.send(b"first", partition=0)
    world.settle(12)
    assert first.result(0).offset == 0
    world.coordinator.fail(ADD_PARTITIONS, {("test", 1): TOPIC_AUTHORIZATION})
    refused = world.send(b"refused", partition=1)
    world.settle(12)
    assert world.session.dialog.state is State.ABORTABLE_ERROR
    assert isinstance(refused.exception(0), KafkaError)
    world.abort()
    (end,) = world.coordinator.of(END_TXN)
    assert end.body.committed is False
    world.begin()
    world.send(b"next", partition=1)
    world.commit()
    assert (world.committed(0), world.committed(1)) == ([], [b"next"])


def test_the_coordinator_is_looked_up_in_an_error_state_too() -> None:
    """G testFindCoordinatorAllowedInAbortableErrorState: NOT_COORDINATOR after the error."""
    world = TransactionalWorld(1)
    world.begin()
    world.cluster.brokers[0].held.add(ADD_PARTITIONS)
    world.send()
    world.settle(4)
    found = len(world.coordinator.of(FIND_COORDINATOR))
    world.session.dialog.abortable(KafkaError("for now"))
    world.coordinator.fail(ADD_PARTITIONS, NOT_COORDINATOR)
    world.cluster.brokers[0].release()
    world.run(200)
    world.abort()
    assert world.session.dialog.state is State.READY
    assert len(world.coordinator.of(FIND_COORDINATOR)) == found + 1


@pytest.mark.parametrize("code", [47, 90])
@pytest.mark.parametrize("api", [ADD_PARTITIONS, ADD_OFFSETS])
def test_fenced_by_any_request(api: int, code: int) -> None:
    """G testProducerFencedInAddPartitionToTxn, testInvalidProducerEpochConvertToProducerFencedInAddPartitionToTxn,
    testProducerFencedInAddOffSetsToTxn, testInvalidProducerEpochConvertToProducerFencedInAddOffSetsToTxn: raised as
    it is by every call, and the record that waits fails with it.
    """
    world = TransactionalWorld(1)
    world.begin()
    world.coordinator.fail(api, code)
    if api == ADD_OFFSETS:
        with pytest.raises(ProducerFencedError):
            world.finish(world.session.send_offsets(OFFSETS, GROUP))
    else:
        future = world.send()
        world.settle(12)
        assert isinstance(future.exception(0), ProducerFencedError)
    calls: list[Callable[[], object]] = [world.session.begin, world.session.commit, world.session.abort]
    calls.append(lambda: world.session.send_offsets(OFFSETS, GROUP))
    for call in calls:
        with pytest.raises(ProducerFencedError):
            call()


def test_sequences_after_a_forgotten_producer_id_and_no_other_epoch() -> None:
    """G testAbortTransactionAndResetSequenceNumberOnUnknownProducerId: InitProducerId v1; tp0 from 0, tp1 from 1."""
    world = TransactionalWorld(1, ready=False)
    world.coordinator.limit(INIT_PRODUCER_ID, 1)
    world.cluster.brokers[0].drop()
    world.run(200)
    world.finish(world.session.initialize())
    world.begin()
    for partition in (1, 0, 0):
        world.send(partition=partition)
        world.settle(12)
    world.cluster.fail("test", 0, Answer(UNKNOWN_ID, log_start_offset=0))
    world.send(b"lost")
    world.run(200)
    world.abort()
    world.cluster.logs["test", 0].producers.clear()
    world.begin()
    for partition in (0, 1):
        world.send(b"next", partition=partition)
    world.commit()
    assert [world.cluster.logs["test", partition].batches[-1].base_sequence for partition in (0, 1)] == [0, 1]
    assert (world.committed(0), world.committed(1)) == ([b"next"], [b"next"])


@BOTH
def test_an_answer_for_a_batch_that_expired(version: int) -> None:
    """F testReceiveFailedBatchTwiceWithTransactions: INVALID_TXN_STATE comes late; one error, one abort, then ready."""
    world = TransactionalWorld(version, delivery_timeout_ms=6000)
    world.begin()
    world.send(b"confirmed")
    world.settle(12)
    world.cluster.brokers[0].held.add(PRODUCE)
    future = world.send(b"late")
    world.settle(2)
    world.advance(4000)
    world.settle()
    world.advance(2001)
    assert len(held(world)) == 1
    reply(world, (0, Answer(INVALID_TXN_STATE)))
    world.cluster.brokers[0].held.clear()
    world.run(300)
    assert isinstance(future.exception(0), KafkaTimeoutError)
    states = [world.session.dialog.state]
    world.abort()
    states.append(world.session.dialog.state)
    assert states == [State.ABORTABLE_ERROR, State.READY]
    assert world.coordinator.names()[-1] == ("init" if version == 1 else "end")
    assert world.producer.producer_epoch == 2


# -- waits -----------------------------------------------------------------------------------------------------


def test_a_coordinator_that_cannot_be_reached_is_looked_up_again() -> None:
    """G testLookupCoordinatorOnDisconnectBeforeSend: nothing was sent to it yet."""
    world = TransactionalWorld(2, ready=False, nodes=2)
    world.coordinator.at = 1
    world.cluster.down(1)
    result = world.session.initialize()
    world.run(500)
    assert not result.done
    assert world.coordinator.of(INIT_PRODUCER_ID) == []
    world.coordinator.at = 0
    world.finish(result)
    assert len(world.coordinator.of(FIND_COORDINATOR)) >= 2
    assert world.coordinator.of(INIT_PRODUCER_ID)[-1].broker.node.id == 0


def test_a_coordinator_that_is_slow_to_connect_and_throttles() -> None:
    """F testNodeNotReady, H testInitTransactionWhileThrottled: 5020 ms to connect, 5000 ms throttled, then an id."""
    world = TransactionalWorld(2, ready=False, nodes=2, max_block_ms=60_000)
    world.coordinator.at = 1
    world.cluster.brokers[1].drop()
    world.run(200)
    world.selector.connect_ms = 5020
    world.cluster.brokers[1].throttle_ms = 5000
    begun = world.now
    assert meanwhile(world, world.producer.init_transactions, step=20) is None
    assert world.now - begun >= 10_000
    assert (world.producer.producer_id, world.producer.producer_epoch) == (13131, 1)


def test_init_that_timed_out_may_be_called_again() -> None:
    """H testInitTransactionTimeout: KafkaTimeoutError first; the second call, with answers, is good."""
    world = TransactionalWorld(2, ready=False, max_block_ms=50)
    world.cluster.brokers[0].held.add(FIND_COORDINATOR)
    assert isinstance(meanwhile(world, world.producer.init_transactions), KafkaTimeoutError)
    world.cluster.brokers[0].release()
    assert meanwhile(world, lambda: world.producer.init_transactions(30)) is None
    assert world.session.dialog.state is State.READY


@pytest.mark.parametrize("api", [FIND_COORDINATOR, INIT_PRODUCER_ID])
def test_a_forced_close_ends_a_wait_for_init(api: int) -> None:
    """H testCloseIsForcedOnPendingFindCoordinator, testCloseIsForcedOnPendingInitProducerId."""
    world = TransactionalWorld(2, ready=False)
    world.cluster.brokers[0].held.add(api)
    result = world.session.initialize()
    world.settle()
    assert not result.done
    world.sender.give_up(KafkaError("Producer is closed forcefully."))
    assert result.done and "closed forcefully" in str(result.error)


@pytest.mark.parametrize(("version", "api"), [(1, ADD_OFFSETS), (1, OFFSET_COMMIT), (2, OFFSET_COMMIT)])
def test_a_forced_close_ends_a_wait_for_offsets(version: int, api: int) -> None:
    """H testCloseIsForcedOnPendingAddOffsetRequest."""
    world = TransactionalWorld(version)
    world.begin()
    world.cluster.brokers[0].held.add(api)
    result = world.session.send_offsets(OFFSETS, GROUP)
    world.settle(12)
    assert not result.done
    world.sender.give_up(KafkaError("Producer is closed forcefully."))
    assert result.done and "closed forcefully" in str(result.error)


@BOTH
def test_closing_in_an_illegal_state_comes_to_its_end(version: int) -> None:
    """F testSenderShouldCloseWhenTransactionManagerInErrorState: within 5 s, and nothing can be called any more."""
    world = TransactionalWorld(version)
    world.session.dialog.abortable(KafkaError("out of nowhere"))
    with pytest.raises(IllegalStateError):
        world.session.abort()
    begun = world.now
    world.sender.request_close()
    world.until(lambda: not world.sender.has_work(), limit_ms=5000)
    assert world.now - begun < 5000


def test_group_metadata_in_version_3() -> None:
    """H testSendTxnOffsetsWithGroupMetadata: TxnOffsetCommit v3 is the oldest that names the member."""
    world = TransactionalWorld(1, ready=False)
    world.coordinator.limit(OFFSET_COMMIT, 3)
    world.cluster.brokers[0].drop()
    world.run(200)
    world.finish(world.session.initialize())
    world.begin()
    world.finish(world.session.send_offsets(OFFSETS, GROUP))
    (request,) = world.coordinator.of(OFFSET_COMMIT)
    body = request.body
    assert request.version == 3
    assert (body.member_id, body.generation_id, body.group_instance_id) == ("member", 5, "instance")
    world.commit()
    assert world.coordinator.offsets["myConsumerGroup"] == {TopicPartition("test", 0): 7}
