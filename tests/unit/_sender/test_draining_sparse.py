"""max.sparse.batches.in.flight: what waits for a broker's answer, so that batches fill meanwhile, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.answers import held, hold, lose_answers, reply
from tests.fakes.produce import Answer, batches_of
from tests.fakes.world import World

FULL = bytes(950)
"""No batch of 1,000 bytes takes more than one."""
NOT_ENOUGH_REPLICAS = 19


def busy(limit: int = 2, **config: Any) -> World:
    """A world with two sparse batches in flight to a broker that does not answer."""
    world = World(topics={"test": 6}, batch_size=1000, max_sparse_batches_in_flight=limit, **config)
    hold(world)
    for partition in (0, 1):
        world.send(b"early", partition=partition)
    world.settle()
    assert held_partitions(world) == [[0, 1]]
    return world


def held_partitions(world: World) -> list[list[int]]:
    """Partitions in each request that waits for an answer."""
    return [sorted(partition for _, partition in batches_of(request)) for request in held(world)]


def test_sparse_batches_wait_for_the_answer_and_grow_meanwhile() -> None:
    world = busy()
    futures = [world.send(b"%d" % number, partition=2) for number in range(3)]
    world.run(100)
    assert held_partitions(world) == [[0, 1]]
    reply(world, (0, Answer(base_offset=0)), (1, Answer(base_offset=0)))
    world.settle()
    assert held_partitions(world) == [[2]]
    reply(world, (2, Answer(base_offset=0)))
    world.settle()
    assert [future.result(0).offset for future in futures] == [0, 1, 2]


def test_below_the_limit_and_without_one_they_go() -> None:
    for limit in (0, 3):
        world = busy(limit)
        world.send(partition=2)
        world.settle()
        assert held_partitions(world) == [[0, 1], [2]]


def test_full_batches_go_and_leave_the_others_behind() -> None:
    world = busy()
    world.send(b"sparse", partition=2)
    world.send(FULL, partition=3)
    world.send(FULL, partition=4)
    world.send(b"behind", partition=4)
    world.settle()
    assert held_partitions(world) == [[0, 1], [3, 4]]
    assert [len(world.queue("test", partition).batches) for partition in (2, 3, 4)] == [1, 0, 1]


def test_a_sparse_batch_that_does_not_fit_cuts_no_request_short() -> None:
    world = busy(max_request_size=1800)
    world.send(bytes(850), partition=2)
    world.send(FULL, partition=3)
    world.send(bytes(850), partition=4)
    world.send(bytes(850), partition=5)
    world.settle()
    assert held_partitions(world) == [[0, 1], [3]]


def test_a_flush_does_not_wait() -> None:
    world = busy()
    world.send(b"flushed", partition=2)
    world.accumulator.begin_flush()
    world.settle()
    assert held_partitions(world) == [[0, 1], [2]]


def test_what_is_sent_again_does_not_wait() -> None:
    world = busy()
    reply(world, (0, Answer(base_offset=0)), (1, Answer(code=NOT_ENOUGH_REPLICAS)))
    world.turn()
    for partition in (2, 3):
        world.send(b"sparse", partition=partition)
    world.turn()
    assert held_partitions(world) == [[2, 3]]
    world.until(lambda: held_partitions(world) == [[2, 3], [1]])


def test_another_broker_is_not_held() -> None:
    world = World(nodes=2, topics={"test": 4}, max_sparse_batches_in_flight=1)
    hold(world, 0)
    world.send(partition=0)
    world.settle()
    world.send(partition=2)
    other = world.send(partition=1)
    world.settle()
    assert (len(held(world, 0)), other.result(0).partition) == (1, 1)


@pytest.mark.parametrize("lost", [False, True])
def test_nothing_is_counted_once_all_have_an_outcome(lost: bool) -> None:
    world = busy()
    if lost:
        lose_answers(world, 0)
    else:
        reply(world, (0, Answer(base_offset=0)), (1, Answer(base_offset=0)))
        world.cluster.brokers[0].held.clear()
    world.run(2000)
    future = world.send(partition=2)
    world.run(2000)
    assert future.result(0).offset == 0
    hold(world)
    for partition in (3, 4):
        world.send(partition=partition)
        world.settle()
    assert held_partitions(world) == [[3], [4]]


def test_batches_that_expire_in_flight_hold_until_their_request_ends() -> None:
    world = busy(delivery_timeout_ms=1000, request_timeout_ms=900)
    future = world.send(partition=2)
    world.run(5000)
    assert future.done()
    assert world.pool.available() == world.pool.total
