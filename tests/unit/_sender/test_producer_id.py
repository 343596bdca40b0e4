"""Asking for a producer id; the scenarios are in tests/scenario/test_producer_id.py."""

from __future__ import annotations

from tests.fakes.broker import INIT_PRODUCER_ID
from tests.fakes.world import World


def test_nobody_is_asked_twice_at_once() -> None:
    world = World(idempotent=True, known=False)
    world.cluster.brokers[0].held.add(INIT_PRODUCER_ID)
    world.learn("test")
    world.send()
    world.settle(12)
    assert len(world.cluster.brokers[0].of(INIT_PRODUCER_ID)) == 1
    assert world.cluster.requests() == []


def test_an_unreachable_cluster_is_asked_later() -> None:
    world = World(idempotent=True, known=False)
    world.cluster.down(0)
    world.run(500)
    assert world.cluster.brokers[0].of(INIT_PRODUCER_ID) == []
    world.cluster.up(0)
    world.until(lambda: bool(world.cluster.brokers[0].of(INIT_PRODUCER_ID)))
    world.learn("test")
    assert world.send() is not None
    world.until(lambda: world.values() == [b"v"])
