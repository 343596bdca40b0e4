"""send() and partitions_for() while a topic is not known yet, or never will be."""

from __future__ import annotations

import pytest

from forebay.errors import (
    InvalidTopicError,
    KafkaTimeoutError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
)
from forebay.model import RecordMetadata
from tests.fakes.broker import METADATA, Topic
from tests.fakes.waiting import Watching, meanwhile
from tests.fakes.world import HandDriven, Told, World


def test_the_first_record_waits_for_metadata() -> None:
    world = World(known=False)
    future = meanwhile(world, lambda: world.send(partition=None, key=b"key"))
    world.settle()
    assert future.result(0).topic == "test"


def test_a_partition_that_appears_meanwhile() -> None:
    """H testMetadataWithPartitionOutOfRange: asked for again until the partition is there."""
    world = World(topics={"test": 1})
    asked = len(world.cluster.brokers[0].of(METADATA))
    world.cluster.brokers[0].held.add(METADATA)
    broker, begun = world.cluster.brokers[0], world.now

    def answer() -> None:
        if broker.waiting:
            if world.now > begun + 400:
                world.cluster.create("test", 3)
            request = broker.waiting.pop()
            request.answer(world.cluster.metadata(request))

    future = meanwhile(world, lambda: world.send(partition=2), step=20, each=answer)
    assert world.now > begun + 400
    world.cluster.brokers[0].release()
    world.settle()
    assert future.result(0).partition == 2
    assert len(world.cluster.brokers[0].of(METADATA)) - asked >= 2


def test_a_partition_that_never_appears() -> None:
    """H testMetadataTimeoutWithPartitionOutOfRange: in the future, with the count, after max.block.ms."""
    world = World(topics={"test": 1}, max_block_ms=60)
    told = Told()
    future = meanwhile(world, lambda: world.send(partition=2, on_delivery=told))
    error = future.exception(0)
    assert type(error) is KafkaTimeoutError
    assert error.message == ("Partition 2 of topic test with partition count 1 is not present in metadata after 60 ms.")
    ((metadata, heard),) = told
    assert repr(heard) == repr(error) and (metadata.topic, metadata.partition, metadata.offset) == ("test", 2, -1)


def test_a_topic_that_does_not_exist() -> None:
    """H testTopicNotExistingInMetadata, testTopicRefreshInMetadata: the broker's last word is the cause."""
    world = World(max_block_ms=60)
    error = meanwhile(world, lambda: world.producer.partitions_for("nowhere"))
    assert type(error) is KafkaTimeoutError
    assert error.message == "Topic nowhere not present in metadata after 60 ms."
    assert isinstance(error.__cause__, UnknownTopicOrPartitionError)
    assert "UnknownTopicOrPartitionError" in str(error)
    future = meanwhile(world, lambda: world.producer.send("nowhere", b"v"))
    assert isinstance(future.exception(0), KafkaTimeoutError)


def test_an_idle_topic_is_forgotten_and_comes_back() -> None:
    """H testTopicExpiryInMetadata, F testMetadataTopicExpiry: dropped at the next update, fetched again for a send."""
    world = World(metadata_max_idle_ms=60_000)
    world.send()
    world.settle()
    world.advance(120_000)
    world.metadata.request_update(True)
    world.run(300)
    assert world.metadata.cluster().partition_count("test") == 0
    future = meanwhile(world, lambda: world.send(b"again"))
    world.settle()
    assert future.result(0).offset == 1


def test_an_invalid_topic_arrives_in_the_future() -> None:
    """H testCallbackAndInterceptorHandleError: metadata with partition -1, callback and interceptor once."""
    watching = Watching()
    world = World(interceptor_classes=[watching])
    world.cluster.topics["in valid"] = Topic(error=17)
    told = Told()
    future = meanwhile(world, lambda: world.producer.send("in valid", b"v", on_delivery=told))
    ((metadata, error),) = told
    assert metadata == RecordMetadata("in valid", -1, -1, -1, -1, -1)
    assert not metadata.has_offset and not metadata.has_timestamp
    assert isinstance(error, InvalidTopicError) and repr(future.exception(0)) == repr(error)
    assert watching.acknowledged == told
    # Known to be invalid, it is refused at once.
    asked = len(world.cluster.brokers[0].of(METADATA))
    assert isinstance(world.producer.send("in valid", b"v").exception(0), InvalidTopicError)
    assert len(world.cluster.brokers[0].of(METADATA)) == asked


def test_a_forbidden_topic_arrives_in_the_future() -> None:
    world = World()
    world.cluster.topics["secret"] = Topic(error=29)
    future = meanwhile(world, lambda: world.producer.send("secret", b"v"))
    assert isinstance(future.exception(0), TopicAuthorizationError)
    raised = meanwhile(world, lambda: world.producer.partitions_for("secret"))
    assert isinstance(raised, TopicAuthorizationError)


def test_a_callback_does_not_wait_for_metadata_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(max_block_ms=2000)
    monkeypatch.setattr(HandDriven, "_on_sender_thread", lambda producer: True)
    failed: list[BaseException | None] = []
    world.send(on_delivery=lambda report: failed.append(world.send(topic="new").exception(0)))
    world.settle()
    (error,) = failed
    assert isinstance(error, KafkaTimeoutError) and "Topic new not present in metadata" in error.message
    assert "callbacks run on the sender's thread" in error.message and "2000" not in error.message


def test_partitions_for() -> None:
    world = World(nodes=2, topics={"test": 3})
    infos = world.producer.partitions_for("test")
    assert [(info.partition, info.leader.id if info.leader else None) for info in infos] == [(0, 0), (1, 1), (2, 0)]


def test_nowait_never_waits_for_metadata() -> None:
    """Nor says that it has waited."""
    world = World(known=False, max_block_ms=2000)
    with pytest.raises(
        KafkaTimeoutError, match=r"Topic test not present in metadata yet, and send_nowait\(\) does not"
    ):
        world.producer.send_nowait("test", b"v")
    with pytest.raises(KafkaTimeoutError, match=r"partitions_for\('test'\), which waits") as caught:
        world.producer.send_nowait("test", b"v", partition=5)
    assert "2000" not in str(caught.value) and caught.value.context["waited_ms"] == 0
    world.learn("test")
    future = world.producer.send_nowait("test", b"v")
    world.settle()
    assert future.result(0).offset == 0


def deleted(world: World) -> None:
    """The topic is gone, and the producer knows it."""
    del world.cluster.topics["test"]
    world.metadata.request_update(True)
    world.run(200)


def test_a_deleted_topic_is_waited_for_again() -> None:
    """4.3: as before its first record; not taken to expire later."""
    world = World(max_block_ms=200)
    world.send()
    world.settle()
    deleted(world)
    future = meanwhile(world, lambda: world.send(b"lost"))
    error = future.exception(0)
    assert isinstance(error, KafkaTimeoutError) and "Topic test not present in metadata after 200 ms." in error.message
    assert isinstance(error.__cause__, UnknownTopicOrPartitionError)
    assert not world.accumulator.has_incomplete()
    world.cluster.create("test", 2)
    again = meanwhile(world, lambda: world.send(b"again"))
    world.settle()
    assert again.exception(0) is None and world.values()[-1] == b"again"


def test_a_topic_with_batches_is_not_dropped_as_idle() -> None:
    """12: one that is used only into a batch that stays open for longer than metadata.max.idle.ms."""
    world = World(
        linger_ms=20_000,
        delivery_timeout_ms=60_000,
        metadata_max_idle_ms=5000,
        metadata_max_age_ms=1000,
        batch_size=9999,
    )
    future = world.send()
    world.run(15_000, 500)
    assert world.metadata.retains("test") and world.queue().leader_id == 0
    world.run(6000, 500)
    assert future.result(0).offset == 0 and world.metadata.retains("test")
    world.run(7000, 500)
    assert not world.metadata.retains("test")
