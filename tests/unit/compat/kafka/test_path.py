"""send() and its future as kafka-python has them, on a producer in memory."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from forebay.compat.kafka import DefaultSerializer, JsonSerializer, KafkaProducer, Serializer, StickyPartitioner, errors
from forebay.compat.kafka._path import FutureRecordMetadata, murmur2
from forebay.compat.kafka.producer import _Native
from forebay.compat.kafka.structs import RecordMetadata, TopicPartition
from tests.fakes.broker import PRODUCE
from tests.fakes.world import HandDriven, World


class Driven(_Native, HandDriven):
    """The native producer below kafka-python's, without a thread."""


def ours(world: World, **configs: Any) -> KafkaProducer:
    return KafkaProducer._around(world.producer, **configs)


def made(**options: Any) -> World:
    return World(kind=Driven, **options)


def test_the_result_has_the_originals_fields() -> None:
    world = made()
    future = ours(world).send("test", b"value", b"key", [("é", b"12"), ("h", b"")], 1, 1234)
    assert not future.is_done and not future.succeeded() and not future.failed()
    assert future.value is None and future.exception is None
    world.settle()
    assert future.is_done and future.succeeded() and not future.failed() and not future.retriable()
    expected = RecordMetadata("test", 1, TopicPartition("test", 1), 0, 1234, None, 3, 5, 5)
    assert future.get(0) == future.value == expected and future.exception is None
    assert world.values("test", 1) == [b"value"]


def test_sizes_of_what_is_not_there() -> None:
    world = made()
    producer = ours(world)
    futures = [producer.send("test", None, b"k", partition=0), producer.send("test", b"v", partition=0, headers=[])]
    world.settle()
    sizes = [
        (found.serialized_key_size, found.serialized_value_size, found.serialized_header_size)
        for found in (future.get(0) for future in futures)
    ]
    assert sizes == [(1, -1, -1), (-1, 1, -1)]


def test_callbacks_of_a_delivered_record() -> None:
    world = made()
    seen: list[Any] = []

    def note(*arguments: Any, **named: Any) -> None:
        seen.append((*arguments, *named.items()))

    future = ours(world).send("test", b"v", partition=0)
    assert future.add_callback(note, "first", way="x") is future
    assert future.add_errback(note, "never") is future and future.add_both(note, "both") is future
    assert future.add_callback(lambda found: seen.append(future.is_done and found == future.get(0))) is future
    assert seen == []
    world.settle()
    metadata = future.value
    assert seen == [("first", metadata, ("way", "x")), ("both", metadata), True]
    future.add_callback(note, "at once")
    assert seen[-1] == ("at once", metadata)


def test_callbacks_of_a_failed_record() -> None:
    world = made(delivery_timeout_ms=6000)
    seen: list[Any] = []
    world.cluster.brokers[0].held.add(PRODUCE)
    future = ours(world).send("test", b"v", partition=0)
    future.add_callback(seen.append).add_errback(seen.append).add_both(lambda error: seen.append(type(error)))
    world.run(6100)
    assert future.failed() and not future.succeeded() and future.retriable() and future.value is None
    assert [type(seen[0]), *seen[1:]] == [errors.KafkaTimeoutError, errors.KafkaTimeoutError]
    assert isinstance(future.exception, errors.KafkaTimeoutError)
    with pytest.raises(errors.KafkaTimeoutError, match="Expiring 1 record"):
        future.get(0)
    future.add_errback(seen.append)
    assert len(seen) == 3


def test_what_a_callback_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    world = made()
    seen: list[Any] = []

    def fails(_found: Any) -> None:
        raise ValueError("mine")

    future = ours(world).send("test", b"v", partition=0)
    future.add_callback(fails).add_callback(seen.append)
    world.settle()
    assert len(seen) == 1 and "mine" in caplog.text
    future.add_callback(fails)
    assert caplog.text.count("ValueError: mine") == 2


class Other:
    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.success: Callable[[Any], object] = self.seen.append
        self.failure: Callable[[Any], object] = self.seen.append


def test_a_chain_hands_the_outcome_on() -> None:
    world, other = made(), Other()
    future = ours(world).send("test", b"v", partition=0)
    assert future.chain(other) is future
    world.settle()
    assert other.seen == [future.value]


def test_a_wait_that_ends_too_early() -> None:
    world = made()
    world.cluster.brokers[0].held.add(PRODUCE)
    future = ours(world).send("test", b"v", partition=0)
    world.settle()
    with pytest.raises(errors.KafkaTimeoutError, match="still on its way"):
        future.get(timeout=0)


def test_a_future_is_no_value() -> None:
    world = made()
    future = ours(world).send("test", b"v", partition=0)
    with pytest.raises(TypeError, match="pickle its get"):
        pickle.dumps(future)
    with pytest.raises(TypeError, match="must be callable, got int"):
        future.add_callback(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="made by KafkaProducer.send"):
        FutureRecordMetadata()
    assert "test" in repr(future) and future.native.done() is False


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        ({}, ValueError, "Need at least one: key or value"),
        ({"value": "text"}, TypeError, "without a serializer it must be bytes"),
        ({"value": b"v", "key": 5}, TypeError, "key for topic test is int"),
        ({"value": b"v", "headers": {"a": b"b"}}, TypeError, "headers must be a list"),
        ({"value": b"v", "headers": [("a", "b")]}, TypeError, r"a header must be a pair \(str, bytes\)"),
        ({"value": b"v", "headers": ["ab"]}, TypeError, "a header must be a pair"),
        ({"value": b"v", "partition": 2}, ValueError, "Unrecognized partition 2 for topic test, which has 2"),
        ({"value": b"v", "partition": -1}, ValueError, "Unrecognized partition -1"),
        ({"value": b"v", "partition": "1"}, TypeError, "partition must be an int"),
        ({"value": b"v", "timestamp_ms": -1}, ValueError, "Invalid timestamp"),
        ({"value": b"v" * 2_000_000}, errors.for_code(10), "larger than 1048576"),
    ],
)
def test_what_is_raised_at_once(arguments: dict[str, Any], kind: type[Exception], said: str) -> None:
    world = made()
    with pytest.raises(kind, match=said):
        ours(world).send("test", **arguments)
    world.settle()
    assert world.values("test", 0) == world.values("test", 1) == []


def test_a_topic_that_is_no_name() -> None:
    with pytest.raises(TypeError, match="topic must be a str, got bytes"):
        ours(made()).send(b"test", b"v")  # type: ignore[arg-type]


def test_a_topic_that_nobody_knows() -> None:
    world = made(max_block_ms=0)
    with pytest.raises(errors.KafkaTimeoutError, match="Topic other not present in metadata"):
        ours(world).send("other", b"v")


def test_no_room() -> None:
    world = made(batch_size=1000, buffer_memory=2000, max_block_ms=0)
    world.cluster.brokers[0].held.add(PRODUCE)
    producer = ours(world)
    for _ in range(2):
        producer.send("test", bytes(900), partition=0)
    with pytest.raises(errors.KafkaTimeoutError, match="Failed to allocate memory"):
        producer.send("test", bytes(900), partition=0)


class Marked(Serializer):
    def serialize(self, topic: str, headers: list[tuple[str, bytes]], data: Any) -> Any:
        headers.append(("topic", topic.encode()))
        return data


def test_serializers() -> None:
    world = made()
    futures = [
        ours(world, value_serializer=JsonSerializer(), key_serializer=DefaultSerializer()).send("test", {"a": 1}, "k"),
        ours(world, value_serializer=lambda value: str(value).encode(), key_serializer=Marked()).send("test", 5, b"k"),
        ours(world, value_serializer=lambda value: bytearray(b"x")).send("test", None, b"k"),
    ]
    world.settle()
    assert {*world.values("test", 0), *world.values("test", 1)} == {b"5", b"x", b'{"a": 1}'}
    assert [future.get(0).serialized_header_size for future in futures] == [-1, 9, -1]


def test_what_a_serializer_raises_goes_through() -> None:
    producer = ours(made(), value_serializer=lambda value: value.encode())
    with pytest.raises(AttributeError):
        producer.send("test", 5)


def test_keys_go_where_java_puts_them() -> None:
    world = made(topics={"test": 7})
    producer = ours(world)
    futures = {key: producer.send("test", b"v", key) for key in (b"key-%d" % number for number in range(30))}
    world.settle(20)
    assert {key: future.get(0).partition for key, future in futures.items()} == {
        key: (murmur2(key) & 0x7FFFFFFF) % 7 for key in futures
    }


def test_records_without_a_key_go_to_random_partitions() -> None:
    world = made(topics={"test": 4, "one": 1})
    producer = ours(world)
    futures = [producer.send("test", b"v") for _ in range(60)]
    alone = producer.send("one", b"v")
    world.settle(20)
    places = [future.get(0).partition for future in futures]
    assert set(places) == {0, 1, 2, 3} and alone.get(0).partition == 0
    sticky = ours(world, partitioner=StickyPartitioner())
    futures = [sticky.send("test", b"v") for _ in range(60)]
    world.settle(20)
    assert len({future.get(0).partition for future in futures}) == 1


def test_a_partitioner_of_the_program() -> None:
    world = made(topics={"test": 4})
    seen: list[Any] = []

    def choose(key: Any, every: list[int], available: list[int]) -> Any:
        seen.append((key, every, available))
        return {b"none": None, b"far": 4}.get(key, 3)

    producer = ours(world, partitioner=choose)
    future = producer.send("test", b"v", b"k")
    world.settle()
    assert future.get(0).partition == 3 and seen == [(b"k", [0, 1, 2, 3], [0, 1, 2, 3])]
    with pytest.raises(ValueError, match="did not assign a partition"):
        producer.send("test", b"v", b"none")
    with pytest.raises(ValueError, match="Unrecognized partition 4"):
        producer.send("test", b"v", b"far")
    assert producer.send("test", b"v", b"k", partition=1) is not None and len(seen) == 3


def test_a_closed_producer() -> None:
    world = made()
    producer = ours(world)
    producer._shut()
    with pytest.raises(errors.IllegalStateError, match="already closed"):
        producer.send("test", b"v")


def test_a_native_producer_that_takes_no_more() -> None:
    world = made()
    producer = ours(world)
    world.producer._after_fork_in_child()
    with pytest.raises(errors.IllegalStateError, match="belongs to the parent process"):
        producer.send("test", b"v")
