"""Records without a key, spread over brokers that are equal, slow, or dead (KIP-794)."""

from __future__ import annotations

import random

import pytest

from forebay.errors import KafkaError
from tests.fakes.world import World


def spread(world: World, count: int, pause_ms: float, *, partitions: int = 3) -> list[int]:
    """Bytes in each partition's log after so many records of 100 bytes without a key."""
    for number in range(count):
        world.send(bytes(100), partition=None)
        if number % 5 == 4:
            world.settle(2)
            world.advance(pause_ms)
    world.until(lambda: not world.accumulator.has_incomplete(), limit_ms=60_000, step=5)
    return [sum(len(value or b"") for value in world.values(partition=number)) for number in range(partitions)]


@pytest.mark.parametrize("linger", [0, 5])
def test_equal_brokers_get_equal_shares(linger: int) -> None:
    """O8: within 5 % of the mean (1 % of the records would already be 12 batches here)."""
    draw = random.Random(1)
    world = World(nodes=3, topics={"test": 3}, linger_ms=linger, batch_size=600, random=draw.random)
    sizes = spread(world, 20_000, 1)
    mean = sum(sizes) / 3
    assert all(abs(size - mean) < 0.05 * mean for size in sizes), sizes


def test_a_slow_broker_gets_less() -> None:
    """O8: the longer its queue, the fewer new records; off, it gets as much as the others."""
    shares = []
    for adaptive in (True, False):
        world = World(
            nodes=3,
            topics={"test": 3},
            batch_size=600,
            random=random.Random(2).random,
            max_in_flight_requests_per_connection=1,
            delivery_timeout_ms=60_000,
            partitioner_adaptive_partitioning_enable=adaptive,
        )
        world.cluster.brokers[2].delay_ms = 40
        sizes = spread(world, 6000, 2)
        shares.append(sizes[2] / sum(sizes))
    assert shares[0] < 0.2 < 0.28 < shares[1]


def test_a_broker_that_takes_nothing_gets_nothing() -> None:
    """O8: after partitioner.availability.timeout.ms, as long as it lasts."""
    world = World(
        nodes=3,
        topics={"test": 3},
        batch_size=600,
        random=random.Random(3).random,
        partitioner_availability_timeout_ms=100,
        delivery_timeout_ms=20_000,
    )
    world.cluster.down(2)
    world.run(50)
    for _ in range(300):
        world.send(bytes(100), partition=None)
        world.settle(2)
        world.advance(2)
    waiting = len(world.queue(partition=2).batches)
    assert waiting > 0
    for _ in range(600):
        world.send(bytes(100), partition=None)
        world.settle(2)
        world.advance(2)
    assert len(world.queue(partition=2).batches) == waiting
    world.cluster.up(2)
    world.until(lambda: not world.accumulator.has_incomplete(), limit_ms=10_000)
    assert sum(len(world.values(partition=number)) for number in range(3)) == 900


def test_partitions_without_a_leader_are_left_alone() -> None:
    world = World(topics={"test": 3}, batch_size=300)
    world.cluster.move("test", 1, -1)
    world.metadata.request_update(True)
    world.run(200)
    futures = [world.send(bytes(100), partition=None) for _ in range(60)]
    world.until(lambda: all(future.done() for future in futures))
    assert {future.result(0).partition for future in futures} == {0, 2}


def test_a_topic_that_grows() -> None:
    world = World(topics={"test": 1}, batch_size=300)
    world.send(partition=None)
    world.settle()
    world.cluster.create("test", 4)
    world.metadata.request_update(True)
    world.run(200)
    futures = [world.send(bytes(100), partition=None) for _ in range(80)]
    world.until(lambda: all(future.done() for future in futures))
    assert len({future.result(0).partition for future in futures}) == 4


def test_nothing_is_lost_when_the_only_broker_never_comes_back() -> None:
    world = World(topics={"test": 3}, batch_size=300, delivery_timeout_ms=6000)
    world.cluster.down(0)
    world.settle()
    futures = [world.send(bytes(100), partition=None) for _ in range(50)]
    world.run(6200, 100)
    assert all(isinstance(future.exception(0), KafkaError) for future in futures)
    assert world.pool.available() == world.pool.total
