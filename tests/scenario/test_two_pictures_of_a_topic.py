"""Two topics of one name, one after the other: what is said of the one that is gone does not count for the other."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.fakes.answers import held, hold, lose_answers
from tests.fakes.broker import PRODUCE
from tests.fakes.produce import Answer, answer_produce, named
from tests.fakes.world import World
from tests.scenario.test_recreated_topic import BY_ID, BY_NAME, answered, known, learn_of_it, two_in_flight

NOT_LEADER, NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID = 6, 19, 56, 100, 103


def answer_old(request: Any, answer: Answer) -> None:
    """Under the id that the request came by, although the cluster may not know it any more."""
    answer_produce(request, {(named(request, request.body.topic_data[0]), 0): answer})


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_a_leader_of_the_topic_that_is_gone_is_none_of_the_new_one(version: int) -> None:
    """The hint's epoch is higher than any that the new topic will have for long, and would be believed for ever."""
    world = known(version)
    hold(world)
    future = world.send(b"5")
    world.settle(2)
    (request,) = held(world)
    world.cluster.recreate("test")
    learn_of_it(world)
    world.cluster.brokers[0].waiting.remove(request)
    answer_old(request, Answer(NOT_LEADER, leader=(1, 101)))
    world.cluster.brokers[0].release()
    world.run(2000)
    assert future.done() and future.result(0).offset == 0
    assert world.values() == [b"5"]


def test_a_stale_broker_does_not_make_a_topic_another_one() -> None:
    """An older id and then the right one again: what is in the log is known by its stamp, however often that is."""
    world = known(BY_ID)
    hold(world)
    futures = []
    for value in (b"5", b"6", b"7"):
        futures.append(world.send(value))
        world.settle(2)
    for request in held(world):
        world.cluster.take(request)
    world.cluster.logs["test", 0].restart()  # remembers the last alone
    broker = world.cluster.brokers[0]
    broker.waiting.clear()
    broker.held.clear()
    topic = world.cluster.topics["test"]
    right, topic.topic_id = topic.topic_id, uuid.UUID(int=99)
    learn_of_it(world)
    topic.topic_id = right
    learn_of_it(world)
    broker.drop()
    world.run(4000)
    assert [future.exception(0) for future in futures] == [None] * 3
    assert world.values() == [b"0", b"1", b"5", b"6", b"7"]


@pytest.mark.parametrize("code", [NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR, NOT_LEADER])
def test_by_name_what_was_overtaken_is_not_taken_for_written(code: int) -> None:
    """The new log takes the second; of the first it has nothing, and metadata, slow to come, is asked before it ends.

    After KAFKA_STORAGE_ERROR, whose batch may be in the log, it was acknowledged; after NOT_ENOUGH_REPLICAS, which asks
    for no metadata, it ran out of time.
    """
    world = known(BY_NAME)
    futures = two_in_flight(world)
    world.cluster.recreate("test")
    world.cluster.fail("test", 0, code)
    answered(world, 900)
    assert futures[1].result(0).offset == 0 and not futures[0].done()
    world.run(1500)
    assert futures[0].result(0).offset == 1
    assert world.values() == [b"6", b"5"]


def test_by_name_what_is_in_the_log_is_acknowledged_when_metadata_says_so() -> None:
    """The same topic: a broker that forgot all but the last batch has the one before it, too."""
    world = known(BY_NAME)
    futures = two_in_flight(world)
    lose_answers(world, 2)
    world.run(1500)
    assert [future.exception(0) for future in futures] == [None, None]
    assert world.values() == [b"0", b"1", b"5", b"6"] and world.producer.producer_epoch == 0


@pytest.mark.parametrize("code", [UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID])
def test_a_broker_that_is_behind_is_asked_again(code: int) -> None:
    world = known(BY_ID)
    world.cluster.fail("test", 0, code, code)
    futures = [world.send(b"%d" % number) for number in (2, 3)]
    world.run(1000)
    assert [future.result(0).offset for future in futures] == [2, 3]


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_without_answers_a_closed_connection_brings_the_new_id(version: int) -> None:
    """A broker that refuses closes the connection, as acks=0 leaves it no other word."""
    world = World(known=False, nodes=2, acks="0")

    def produce(request: Any) -> None:
        if any(answer.code for answer in world.cluster.take(request).values()):
            request.link.reset()

    for broker in world.cluster.brokers.values():
        broker.ranges[PRODUCE] = (3, version)
        broker.script[PRODUCE] = produce
    world.learn("test")
    world.send(b"0")
    world.run(50)
    world.cluster.recreate("test")
    for number in range(1, 20):
        world.send(b"%d" % number)
        world.run(50)
    assert world.values()[-15:] == [b"%d" % number for number in range(5, 20)]
