"""A consumer group's offsets in a transaction, over both generations of the protocol."""

from __future__ import annotations

import pytest

from forebay.errors import (
    CommitFailedError,
    GroupAuthorizationError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaError,
    UnsupportedVersionError,
    for_code,
)
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from tests.fakes.coordinator import ADD_OFFSETS, END_TXN, FIND_COORDINATOR, OFFSET_COMMIT, TransactionalWorld
from tests.fakes.waiting import meanwhile

GROUP = ConsumerGroupMetadata("myConsumerGroup", 5, "member", "instance")
FIRST, SECOND = TopicPartition("test", 0), TopicPartition("test", 1)
OFFSETS = {FIRST: OffsetAndMetadata(7), SECOND: OffsetAndMetadata(8)}
BOTH = pytest.mark.parametrize("version", [1, 2])


@BOTH
def test_offsets_are_committed_with_the_transaction(version: int) -> None:
    """G testBasicTransaction, testSendOffsetsWithGroupMetadata: the member is named; nothing shows before the end."""
    world = TransactionalWorld(version)
    world.begin()
    world.finish(world.session.send_offsets(OFFSETS, GROUP))
    assert world.coordinator.offsets["myConsumerGroup"] == {}
    (request,) = world.coordinator.of(OFFSET_COMMIT)
    body = request.body
    assert (body.group_id, body.generation_id, body.member_id, body.group_instance_id) == (
        "myConsumerGroup",
        5,
        "member",
        "instance",
    )
    assert request.version == (5 if version == 2 else 4)
    assert len(world.coordinator.of(ADD_OFFSETS)) == (1 if version == 1 else 0)
    world.commit()
    assert world.coordinator.offsets["myConsumerGroup"] == {FIRST: 7, SECOND: 8}


@BOTH
def test_offsets_of_an_aborted_transaction_never_show(version: int) -> None:
    world = TransactionalWorld(version)
    world.begin()
    world.finish(world.session.send_offsets(OFFSETS, GROUP))
    world.abort()
    assert world.coordinator.offsets["myConsumerGroup"] == {}
    assert len(world.coordinator.of(END_TXN)) == 1


@BOTH
@pytest.mark.parametrize("code", [3, 14, 13])
def test_only_what_was_refused_is_sent_again(version: int, code: int) -> None:
    """G testHandlingOf{UnknownTopicPartitionError, CoordinatorLoadingError, NetworkException}OnTxnOffsetCommit."""
    world = TransactionalWorld(version)
    world.begin()
    world.coordinator.fail(OFFSET_COMMIT, {SECOND: code})
    world.finish(world.session.send_offsets(OFFSETS, GROUP))
    first, second = world.coordinator.of(OFFSET_COMMIT)
    assert len(first.body.topics[0].partitions) == 2
    assert [part.partition_index for part in second.body.topics[0].partitions] == [1]
    world.commit()
    assert world.coordinator.offsets["myConsumerGroup"] == {FIRST: 7, SECOND: 8}


@BOTH
@pytest.mark.parametrize("code", [15, 16, 7])
def test_the_groups_coordinator_is_looked_up_again(version: int, code: int) -> None:
    world = TransactionalWorld(version)
    world.begin()
    world.coordinator.fail(OFFSET_COMMIT, {FIRST: code, SECOND: code})
    world.finish(world.session.send_offsets(OFFSETS, GROUP))
    groups = [request for request in world.coordinator.of(FIND_COORDINATOR) if request.body.key_type == 0]
    assert len(groups) == 2


@BOTH
@pytest.mark.parametrize(
    ("code", "kind"), [(22, CommitFailedError), (25, CommitFailedError), (30, GroupAuthorizationError), (82, None)]
)
def test_a_group_that_has_moved_on_makes_the_transaction_abortable(
    version: int, code: int, kind: type[KafkaError] | None
) -> None:
    """G testUnknownMemberId..., testIllegalGeneration..., testFencedInstanceId..., testGroupAuthorizationFailure..."""
    world = TransactionalWorld(version)
    world.begin()
    world.coordinator.fail(OFFSET_COMMIT, {FIRST: code, SECOND: code})
    with pytest.raises(kind or for_code(code) or KafkaError):
        world.finish(world.session.send_offsets(OFFSETS, GROUP))
    assert world.state == "ABORTABLE_ERROR"
    world.abort()
    assert world.coordinator.offsets["myConsumerGroup"] == {}
    world.begin()
    world.finish(world.session.send_offsets(OFFSETS, GROUP))
    world.commit()
    assert world.coordinator.offsets["myConsumerGroup"] == {FIRST: 7, SECOND: 8}


def test_an_abort_after_the_group_was_refused_asks_nobody() -> None:
    """G shouldNotSendAbortTxnRequestWhenOnlyAddOffsetsRequestFailed."""
    world = TransactionalWorld(1)
    world.begin()
    world.coordinator.fail(ADD_OFFSETS, 30)
    with pytest.raises(GroupAuthorizationError, match="myConsumerGroup"):
        world.finish(world.session.send_offsets(OFFSETS, GROUP))
    world.abort()
    assert "end" not in world.coordinator.names()


def test_an_unknown_error_of_the_coordinator_is_fatal() -> None:
    """G shouldFailAbortIfAddOffsetsFailsWithFatalError: UNKNOWN_SERVER_ERROR."""
    world = TransactionalWorld(1)
    world.begin()
    world.coordinator.fail(ADD_OFFSETS, -1)
    with pytest.raises(KafkaError, match="AddOffsetsToTxn"):
        world.finish(world.session.send_offsets(OFFSETS, GROUP))
    with pytest.raises(KafkaError, match="error state"):
        world.session.abort()
    assert world.state == "FATAL_ERROR"


def test_group_metadata_is_never_left_out() -> None:
    """G testSendOffsetWithGroupMetadataFailAsAutoDowngradeTxnCommitNotEnabled: TxnOffsetCommit v2 is refused."""
    world = TransactionalWorld(1, ready=False)
    world.coordinator.limit(OFFSET_COMMIT, 2)
    world.cluster.brokers[0].drop()
    world.run(200)
    world.finish(world.session.initialize())
    world.begin()
    with pytest.raises(UnsupportedVersionError, match=r"127\.0\.0\.1.*TxnOffsetCommit versions 0 to 2"):
        world.finish(world.session.send_offsets(OFFSETS, GROUP))
    assert world.state == "FATAL_ERROR"
    assert world.coordinator.of(OFFSET_COMMIT) == []


def test_a_group_without_a_member_may_use_an_old_broker() -> None:
    """H testSendTxnOffsetsWithGroupId."""
    world = TransactionalWorld(1, ready=False)
    world.coordinator.limit(OFFSET_COMMIT, 2)
    world.cluster.brokers[0].drop()
    world.run(200)
    world.finish(world.session.initialize())
    world.begin()
    world.finish(world.session.send_offsets(OFFSETS, ConsumerGroupMetadata("g")))
    assert world.coordinator.of(OFFSET_COMMIT)[0].version == 2


@BOTH
def test_a_call_that_timed_out_is_repeated_with_the_same_arguments(version: int) -> None:
    world = TransactionalWorld(version)
    world.begin()
    world.cluster.brokers[0].held.add(OFFSET_COMMIT)
    result = world.session.send_offsets(OFFSETS, GROUP)
    world.settle(12)
    assert world.session.send_offsets(OFFSETS, GROUP) is result
    with pytest.raises(IllegalStateError, match="`send_offsets_to_transaction` timed out and must be retried with"):
        world.session.send_offsets({FIRST: OffsetAndMetadata(9)}, GROUP)
    with pytest.raises(IllegalStateError, match="`commit_transaction` because the previous call to `send_offsets"):
        world.session.commit()
    world.cluster.brokers[0].release()
    world.finish(result)
    world.commit()


class Position:
    """As confluent-kafka's TopicPartition: attributes."""

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset


def test_what_offsets_may_look_like() -> None:
    world = TransactionalWorld(2)
    producer = world.producer
    world.begin()
    assert meanwhile(world, lambda: producer.send_offsets_to_transaction({FIRST: 3}, "g")) is None
    assert meanwhile(world, lambda: producer.send_offsets_to_transaction([Position("test", 1, 4)], GROUP)) is None
    assert meanwhile(world, lambda: producer.send_offsets_to_transaction({}, "g")) is None
    world.commit()
    assert world.coordinator.offsets["g"] == {FIRST: 3}
    assert world.coordinator.offsets["myConsumerGroup"] == {SECOND: 4}


@pytest.mark.parametrize(
    ("offsets", "group", "words"),
    [
        ({FIRST: "3"}, "g", "'3'"),
        ({FIRST: True}, "g", "True"),
        ({FIRST: -1}, "g", "-1"),
        ({FIRST: 1}, None, "None"),
        ({FIRST: 1}, "", "group_id"),
        ([Position("test", 0, -2)], "g", "-2"),
    ],
)
def test_bad_arguments(offsets: object, group: object, words: str) -> None:
    """H testNullGroupMetadataInSendOffsets, testInvalidGenerationIdAndMemberIdCombinedInSendOffsets."""
    world = TransactionalWorld(2)
    world.begin()
    with pytest.raises(IllegalArgumentError, match=words):
        world.producer.send_offsets_to_transaction(offsets, group)  # type: ignore[arg-type]
    assert world.state == "IN_TRANSACTION"


def test_no_offsets_outside_a_transaction() -> None:
    world = TransactionalWorld(2)
    with pytest.raises(IllegalStateError, match=r"send_offsets_to_transaction\(\) in state READY; allowed now: begin"):
        world.producer.send_offsets_to_transaction({FIRST: 1}, "g")


def test_a_group_that_is_slow_holds_up_no_partition() -> None:
    """Where the client adds partitions itself: while a group's offsets wait for another try, new ones join at once."""
    world = TransactionalWorld(1)
    world.begin()
    for _ in range(3):
        world.coordinator.fail(OFFSET_COMMIT, {FIRST: 14, SECOND: 14})
    result = world.session.send_offsets(OFFSETS, GROUP)
    world.until(lambda: len(world.coordinator.of(OFFSET_COMMIT)) == 1)
    future = world.send(partition=1)
    world.settle(12)
    assert future.done() and not result.done
    assert len(world.coordinator.of(OFFSET_COMMIT)) == 1
    world.finish(result)
    world.commit()
    assert world.committed(1) == [b"v"]
    assert world.coordinator.offsets["myConsumerGroup"] == {FIRST: 7, SECOND: 8}


def test_the_end_waits_for_the_groups_answer() -> None:
    """What the group's coordinator writes after the end would belong to no transaction."""
    world = TransactionalWorld(1, nodes=2)
    world.begin()
    world.send(partition=0)
    world.settle(12)
    for broker in world.cluster.brokers.values():
        broker.held.add(OFFSET_COMMIT)
    call = world.session.send_offsets(OFFSETS, GROUP)
    world.until(lambda: any(broker.waiting for broker in world.cluster.brokers.values()))
    call.acknowledged = True  # its caller gave up
    ended = world.session.abort()
    world.settle(12)
    assert not ended.done and world.coordinator.of(END_TXN) == []
    for broker in world.cluster.brokers.values():
        broker.held.discard(OFFSET_COMMIT)
        broker.release()
    world.finish(ended)
    assert len(world.coordinator.of(END_TXN)) == 1
