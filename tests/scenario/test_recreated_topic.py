"""A topic is deleted and made again with its name while the producer still knows the old one."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from forebay.errors import OutOfOrderSequenceError
from tests.fakes.answers import held, hold, reply, sequences
from tests.fakes.broker import METADATA, PRODUCE, ScriptedCluster
from tests.fakes.coordinator import TransactionalWorld
from tests.fakes.produce import Answer, answer_produce, batches_of, named
from tests.fakes.world import World

NOT_LEADER = 6
BY_NAME, BY_ID = 12, 13


def speaking(cluster: ScriptedCluster, version: int) -> None:
    """What the brokers' newest Produce is, for connections to come."""
    for broker in cluster.brokers.values():
        broker.ranges[PRODUCE] = (3, version)


def known(version: int) -> World:
    """A producer of which the old topic has two batches; a second broker answers for metadata."""
    world = World(idempotent=True, known=False, nodes=2)
    speaking(world.cluster, version)
    world.learn("test")
    for value in (b"0", b"1"):
        world.send(value)
        world.settle()
    assert world.values() == [b"0", b"1"]
    return world


def two_in_flight(world: World) -> list[Any]:
    """Two requests that go on from the old log."""
    hold(world)
    futures = []
    for value in (b"5", b"6"):
        futures.append(world.send(value))
        world.settle(2)
    assert len(held(world)) == 2 and sequences(world, 2) == [2, 3]
    return futures


def answered(world: World, late_ms: float) -> None:
    """The requests are answered, and metadata so much later."""
    for broker in world.cluster.brokers.values():
        broker.held = {METADATA}
    for request in held(world):
        request.broker.waiting.remove(request)
        world.cluster.produce(request)
    world.run(late_ms)
    world.settle(2)
    for broker in world.cluster.brokers.values():
        broker.release()


def versions(world: World) -> set[int]:
    return {request.version for request in world.cluster.requests()}


def learn_of_it(world: World) -> None:
    before = world.metadata.version
    world.metadata.request_update()
    world.until(lambda: bool(world.metadata.version > before))
    world.settle(2)


@pytest.mark.parametrize("late_ms", [0, 900])
def test_by_id_nothing_overtakes(late_ms: float, caplog: pytest.LogCaptureFixture) -> None:
    """The broker knows the old id no more: both are refused until metadata brings the new one, and keep their order."""
    world = known(BY_ID)
    futures = two_in_flight(world)
    world.cluster.recreate("test")
    world.cluster.fail("test", 0, NOT_LEADER)  # of the first that is meant for the new one
    with caplog.at_level(logging.WARNING):
        answered(world, late_ms)
        world.run(1500)
    assert [future.result(0).offset for future in futures] == [0, 1]
    assert world.values() == [b"5", b"6"]
    assert versions(world) == {BY_ID} and world.producer.producer_epoch == 0
    assert "unknown topic id error in produce request on partition test-0" in caplog.text
    assert "Error: " in caplog.text and "[test]" not in caplog.text
    later = [world.send(b"%d" % number) for number in range(7, 12)]
    world.run(100)
    assert [future.result(0).offset for future in later] == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("late_ms", [0, 900])
def test_by_name_what_was_overtaken_is_written_all_the_same(late_ms: float) -> None:
    """The new log, which knows nothing of the producer, takes the second batch first; the first is not in it."""
    world = known(BY_NAME)
    futures = two_in_flight(world)
    world.cluster.recreate("test")
    world.cluster.fail("test", 0, NOT_LEADER)
    answered(world, late_ms)
    assert futures[1].result(0).offset == 0 and not futures[0].done()
    world.run(1500)
    assert futures[0].result(0).offset == 1
    assert world.values() == [b"6", b"5"]
    assert versions(world) == {BY_NAME} and world.producer.producer_epoch == 1
    later = [world.send(b"%d" % number) for number in range(7, 12)]
    world.run(100)
    assert [future.result(0).offset for future in later] == [2, 3, 4, 5, 6]


def test_without_another_id_what_was_overtaken_keeps_its_stamp() -> None:
    """It may be in the log: under another it could be written twice."""
    world = known(BY_NAME)
    two_in_flight(world)
    reply(world, (0, Answer(NOT_LEADER)))
    reply(world, (0, Answer(base_offset=3)))
    world.run(300)
    for _ in range(3):
        learn_of_it(world)
        reply(world, (0, Answer(45)))
        world.run(300)
        assert sequences(world, 1) == [2]
    assert world.producer.producer_epoch == 0


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_the_new_log_gets_one_batch_alone(version: int) -> None:
    """Put off, it is not overtaken: what comes behind it waits until the new log has confirmed one."""
    world = known(version)
    world.cluster.recreate("test")
    learn_of_it(world)
    world.cluster.fail("test", 0, NOT_LEADER, NOT_LEADER)
    before = len(world.cluster.requests())
    futures = []
    for number in range(2, 6):
        futures.append(world.send(b"%d" % number))
        world.settle(2)
    assert len(world.cluster.requests()) == before + 1
    world.run(1500)
    assert [future.result(0).offset for future in futures] == [0, 1, 2, 3]
    assert world.values() == [b"2", b"3", b"4", b"5"] and world.producer.producer_epoch == 0


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_an_answer_of_the_old_log_confirms_nothing_of_the_new_one(version: int) -> None:
    world = known(version)
    hold(world)
    old = world.send(b"2")
    world.settle(2)
    (request,) = held(world)
    world.cluster.recreate("test")
    learn_of_it(world)
    waiting = [world.send(b"3")]
    world.settle(2)
    waiting.append(world.send(b"4"))
    world.settle(2)
    assert len(held(world)) == 1, "not while the old log's answer is outstanding"
    world.cluster.brokers[0].waiting.remove(request)
    answer_produce(request, {(named(request, request.body.topic_data[0]), 0): Answer(base_offset=2)})
    world.settle(3)
    assert old.result(0).offset == 2
    assert len(held(world)) == 1, "one alone, although the partition's last batch was confirmed"
    values = [record.value for batch in batches_of(held(world)[0]).values() for record in batch.records]
    assert values[0] == b"3"
    world.cluster.brokers[0].release()
    world.run(100)
    assert [future.result(0).offset for future in waiting] == [0, 1]


def test_a_topic_without_an_id_goes_by_name_beside_one_with() -> None:
    """A broker that is being upgraded may know ids of some; then the whole request is of the last version by name."""
    world = World(topics={"test": 1, "other": 1}, idempotent=True, known=False, linger_ms=5)
    world.cluster.topics["other"].topic_id = None
    world.learn("test", "other")
    world.send(b"t")
    world.send(b"o", topic="other")
    world.run(20)
    (both,) = world.cluster.requests()
    assert both.version == BY_NAME and {topic.name for topic in both.body.topic_data} == {"test", "other"}
    for _ in range(2):
        for topic in ("test", "other"):
            assert world.send(topic=topic) is not None
            world.run(20)
    assert [request.version for request in world.cluster.requests()] == [BY_NAME, *[BY_ID, BY_NAME] * 2]
    assert len(world.values()) == len(world.values("other")) == 3


@pytest.mark.parametrize("version", [1, 2])
def test_a_transaction_whose_log_is_gone_ends_at_once(version: int) -> None:
    """Of version 1, by name, the new log takes what overtook; of version 2, by id, nothing but a sequence 0.

    No wait for delivery.timeout.ms in either, and the next transaction is in order.
    """
    world = TransactionalWorld(version)
    world.begin()
    world.send(b"1")
    world.run(100)
    hold(world)
    futures = []
    for value in (b"5", b"6"):
        futures.append(world.send(value))
        world.settle(2)
    assert len(held(world)) == 2
    world.cluster.recreate("test")
    world.cluster.fail("test", 0, NOT_LEADER)
    world.cluster.brokers[0].release()
    world.run(1000)
    assert isinstance(futures[0].exception(0), OutOfOrderSequenceError)
    assert futures[1].done() and world.state == "ABORTABLE_ERROR"
    assert world.values() == ([b"6"] if version == 1 else [])
    world.abort()
    world.begin()
    again = [world.send(value) for value in (b"5", b"6")]
    world.commit()
    assert [future.exception(0) for future in again] == [None, None]
    assert world.values()[-2:] == [b"5", b"6"]
    assert versions(world) == ({11} if version == 1 else {BY_ID})


def test_between_two_transactions_a_topic_may_be_made_again() -> None:
    """By id, and the producer finds out by the answer to the first batch; of version 2, whose epochs begin at 0."""
    world = TransactionalWorld(2)
    world.begin()
    world.send(b"1")
    world.commit()
    world.cluster.recreate("test")
    world.begin()
    futures = [world.send(value) for value in (b"2", b"3", b"4")]
    world.commit()
    assert [future.result(0).offset for future in futures] == [0, 1, 2]
    assert world.values() == [b"2", b"3", b"4"]
