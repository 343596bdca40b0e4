"""Where messages without a key go, by partitioner, and how callbacks are served; the rest is tried through Producer."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.compat import confluent_kafka
from forebay.compat.confluent_kafka import KafkaException
from forebay.errors import ProducerFencedError
from tests.fakes.world import World
from tests.unit.compat.test_confluent_kafka import Events, ours


@pytest.mark.parametrize(
    ("partitioner", "kind"),
    [
        ("random", "sticky"),
        ("consistent", "consistent"),
        ("consistent_random", "sticky"),
        ("murmur2", "murmur2"),
        ("murmur2_random", "sticky"),
        ("fnv1a", "fnv1a"),
        ("fnv1a_random", "sticky"),
    ],
)
def test_messages_without_a_key(partitioner: str, kind: str) -> None:
    world, events = World(topics={"test": 8}), Events()
    producer = ours(world, partitioner=partitioner, on_delivery=events)
    for _ in range(60):
        producer.produce("test", b"v")
    world.settle(20)
    producer.poll(0)
    used: set[Any] = {message.partition() for _, message in events}
    assert len(events) == 60 and len(used) == 1
    if kind != "sticky":
        assert used == {getattr(confluent_kafka, kind)(b"", 8)}


def test_a_callback_is_called_where_error_cb_raises() -> None:
    world, events = World(), Events()

    def told(error: Any) -> None:
        raise KafkaException(error)

    producer = ours(world, error_cb=told)
    producer.produce("test", b"a", partition=0, callback=events)
    producer.produce("test", b"b", partition=0, callback=events)
    for batch in world.accumulator.incomplete():
        batch.fail(ProducerFencedError("another one is there"), None, lambda error, result: None)
    with pytest.raises(KafkaException):
        producer.poll(0)
    assert producer.poll(0) == 1  # a fatal error is told once
    assert [(error.name(), message.value()) for error, message in events] == [("_FENCED", b"a"), ("_FENCED", b"b")]
    assert len(producer) == 0


def test_in_a_forked_child_no_callback_is_called() -> None:
    world, events = World(), Events()
    producer = ours(world)
    producer._held._start = lambda run, name: None
    producer.produce("test", b"served", partition=0, callback=events)
    world.settle()
    producer.produce("absent", b"held", callback=events)
    world.producer._after_fork_in_child()
    assert producer.poll(0) == 0
    for call in (producer.purge, producer.abort_transaction):
        with pytest.raises(KafkaException, match="belongs to the parent process"):
            call()
    assert producer.close() and events == []


def test_in_a_forked_child_poll_does_not_wait() -> None:
    world = World()
    producer = ours(world)
    world.producer._after_fork_in_child()
    assert producer.poll(-1) == 0


def test_a_callback_that_forks_has_none_behind_it_called_in_the_child() -> None:
    world, told = World(), []
    producer = ours(world)

    def forked(error: Any, message: Any) -> None:
        told.append(message.value())
        world.producer._after_fork_in_child()

    for value in (b"a", b"b"):
        producer.produce("test", value, partition=0, callback=forked)
    world.settle()
    assert producer.poll(0) == 1 and told == [b"a"]
