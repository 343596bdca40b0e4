"""Leaders move: with and without hints in the answer (KIP-951)."""

from __future__ import annotations

from typing import Any

from tests.fakes.answers import hold, reply
from tests.fakes.broker import METADATA
from tests.fakes.produce import Answer
from tests.fakes.world import World

NOT_LEADER = 6


def moved(hint: bool) -> tuple[World, list[Any]]:
    world = World(nodes=1, topics={"test": 3}, retry_backoff_ms=500, retry_backoff_max_ms=500)
    hold(world)
    world.advance(500)  # since the last answer about metadata
    futures = [world.send(partition=partition) for partition in range(3)]
    world.settle()
    for node_id, partition in ((9990, 0), (9991, 1)):
        world.cluster.add(node_id)
        world.cluster.move("test", partition, node_id)
    answers = [
        (0, Answer(NOT_LEADER, leader=(9990, 101) if hint else None)),
        (1, Answer(NOT_LEADER, leader=(9991, 101) if hint else None)),
        (2, Answer(base_offset=100)),
    ]
    endpoints = [(node, "127.0.0.1", 9000 + node) for node in (9990, 9991)] if hint else []
    world.cluster.brokers[0].held.add(METADATA)
    reply(world, *answers, endpoints=endpoints)
    world.settle()
    return world, futures


def test_a_leader_change_without_hints_backs_off() -> None:
    """F testWhenProduceResponseReturnsWithALeaderShipChangeErrorButNoNewLeaderInformation."""
    world, futures = moved(False)
    assert futures[2].result(0).offset == 100
    infos = world.metadata.cluster().partitions("test")
    assert [(info.leader.id if info.leader else None, info.leader_epoch) for info in infos] == [(0, 100)] * 3
    world.settle(10)
    assert len(world.cluster.requests()) == 1
    assert len([request for request in world.cluster.brokers[0].waiting if request.api_key == METADATA]) == 1
    world.cluster.brokers[0].release()
    world.run(700, 50)
    assert [future.result(0).partition for future in futures] == [0, 1, 2]


def test_a_leader_change_with_hints_is_followed_at_once() -> None:
    """F testWhenProduceResponseReturnsWithALeaderShipChangeErrorAndNewLeaderInformation: no backoff."""
    world, futures = moved(True)
    infos = world.metadata.cluster().partitions("test")
    assert [(info.leader.id if info.leader else None, info.leader_epoch) for info in infos] == [
        (9990, 101),
        (9991, 101),
        (0, 100),
    ]
    world.settle(10)
    assert [len(world.cluster.requests(node)) for node in (9990, 9991)] == [1, 1]
    assert [future.result(0).offset for future in futures] == [0, 0, 100]
    # Metadata is asked for all the same.
    world.run(1200, 50)
    assert len([request for request in world.cluster.brokers[0].requests if request.api_key == METADATA]) >= 2
