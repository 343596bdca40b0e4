"""warm_up(): what is had before the first record, what is not, and what a call leaves behind; purge: test_threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forebay.errors import (
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerClosedError,
    TopicAuthorizationError,
)
from forebay.producer.aio import AsyncKafkaProducer
from tests.fakes.broker import INIT_PRODUCER_ID, METADATA, PRODUCE, Topic
from tests.fakes.loop import drive
from tests.fakes.waiting import meanwhile
from tests.fakes.world import World

Way = Callable[..., Any]


def by_thread(world: World, topics: Any = ("test",), **more: Any) -> Any:
    """What ``warm_up`` gave or raised."""
    return meanwhile(world, lambda: world.producer.warm_up(topics, **more))


def by_loop(world: World, topics: Any = ("test",), **more: Any) -> Any:
    try:
        return drive(world, lambda: AsyncKafkaProducer._around(world.producer).warm_up(topics, **more))
    except (KafkaError, TypeError) as error:
        return error


WAYS = pytest.mark.parametrize("way", [by_thread, by_loop])


def asked(world: World, api: int) -> int:
    """How many requests of an API came to all brokers."""
    return sum(len(broker.of(api)) for broker in world.cluster.brokers.values())


def ready(world: World) -> set[int]:
    """Brokers that are connected."""
    states = world.parts.client.states
    return {node for node in world.cluster.brokers if states.is_ready(node)}


@WAYS
@pytest.mark.parametrize("idempotent", [True, False])
def test_the_first_record_asks_for_nothing_else(way: Way, idempotent: bool) -> None:
    world = World(nodes=3, topics={"test": 6, "other": 1}, idempotent=idempotent, known=False)
    assert way(world) is None
    assert ready(world) == {0, 1, 2}
    assert world.producer.producer_id >= 0 if idempotent else asked(world, INIT_PRODUCER_ID) == 0
    before = {api: asked(world, api) for api in (METADATA, INIT_PRODUCER_ID)}
    future = world.send()
    world.settle(2)
    assert future.result(0).offset == 0
    assert {api: asked(world, api) for api in before} == before
    assert world.sender.warm_ups == []


def test_leaders_alone_are_connected() -> None:
    world = World(nodes=3, topics={"test": 1}, known=False)
    by_thread(world)
    leader = world.producer.partitions_for("test")[0].leader
    assert leader is not None and leader.id in ready(world)
    assert len(world.parts.client.states.nodes) < 5  # that one, and servers that were asked for metadata


def test_what_is_there_is_not_had_again() -> None:
    world = World(nodes=2, known=True)
    assert ready(world) == {0, 1}
    requests = asked(world, METADATA)
    world.producer.warm_up(["test"])  # no turn is needed
    assert asked(world, METADATA) == requests


@WAYS
def test_a_broker_that_is_away_is_named_and_its_last_error_is_the_cause(way: Way) -> None:
    world = World(nodes=2, known=False)
    world.cluster.down(1)
    error = way(world)
    assert isinstance(error, KafkaTimeoutError)
    assert "warm_up: no a connection" not in str(error)
    assert "warm_up: no connection to node" in str(error) and "after 1 s" in str(error)
    assert isinstance(error.__cause__, KafkaError)
    assert world.sender.warm_ups == []


@WAYS
def test_a_broker_that_comes_back_meanwhile_is_connected(way: Way) -> None:
    world = World(nodes=2, known=False, max_block_ms=5000)
    world.cluster.down(1)
    world.selector.call_at(world.now + 700, lambda: world.cluster.up(1))
    assert way(world) is None
    assert ready(world) == {0, 1}


@WAYS
def test_an_id_that_does_not_come_is_named(way: Way) -> None:
    world = World(idempotent=True, known=False)
    world.cluster.brokers[0].held.add(INIT_PRODUCER_ID)
    error = way(world, timeout=0.5)
    assert isinstance(error, KafkaTimeoutError) and "no producer id after 0.5 s" in str(error)


@WAYS
def test_topics_that_are_not_there_are_waited_for_as_long_as_all_else(way: Way) -> None:
    world = World(known=False)
    begun = world.now
    error = way(world, ["test", "unknown"])
    assert isinstance(error, KafkaTimeoutError) and "unknown" in str(error)
    assert world.now - begun < 1200


@WAYS
@pytest.mark.parametrize("given", ["test", b"test"])
def test_one_name_is_no_list(way: Way, given: Any) -> None:
    error = way(World(), given)
    assert isinstance(error, TypeError) and "takes a list of names" in str(error)


@WAYS
def test_a_closed_producer_warms_nothing(way: Way) -> None:
    world = World()
    world.producer._set_state(1)
    assert isinstance(way(world), ProducerClosedError)


def test_a_producer_that_ends_meanwhile_ends_the_wait() -> None:
    world = World(nodes=2, known=False)
    world.cluster.down(1)
    error = meanwhile(world, lambda: world.producer.warm_up(["test"]), each=lambda: close_after(world, 300))
    assert isinstance(error, ProducerClosedError)


def close_after(world: World, ms: float) -> None:
    if world.now >= ms and world.sender.warm_ups:
        world.producer._set_state(1)
        world.parts.thread._end_requests()


def test_a_callback_cannot_wait() -> None:
    world = World()
    raised: list[BaseException] = []

    def told(report: object) -> None:
        try:
            world.producer.warm_up(["test"])
        except IllegalStateError as error:
            raised.append(error)

    world.parts.thread.ident = None
    world.send(on_delivery=told)
    world.producer._on_sender_thread = lambda: True  # type: ignore[method-assign]
    world.settle()
    assert len(raised) == 1 and "from a delivery callback" in str(raised[0])


def test_a_forbidden_topic_is_an_error_at_once() -> None:
    world = World(known=False)
    world.cluster.topics["secret"] = Topic(error=29)
    begun = world.now
    error = by_thread(world, ["test", "secret"])
    assert isinstance(error, TopicAuthorizationError) and world.now - begun < 500


def test_records_go_on_meanwhile() -> None:
    world = World(nodes=2, known=False, max_block_ms=3000)
    world.cluster.down(1)
    sent: list[Any] = []

    def send() -> None:
        if world.sender.warm_ups and not sent:
            sent.append(world.send(partition=0))

    meanwhile(world, lambda: world.producer.warm_up(["test"]), each=send)
    assert sent[0].result(0).offset == 0
    assert asked(world, PRODUCE) == 1
