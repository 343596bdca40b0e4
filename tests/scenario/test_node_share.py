"""buffer.memory.max.node.share: a node that cannot be sent to takes its share of the buffer, and the others go on."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from forebay.errors import BufferExhaustedError
from tests.fakes.world import World

BATCH = 1000
AWAY = 2


def world_without_a_node(**config: Any) -> World:
    """Three nodes, each the leader of one partition; node 2 cannot be reached any more."""
    given = {
        "buffer_memory": 10 * BATCH,
        "batch_size": BATCH,
        "max_request_size": 2 * BATCH,
        "buffer_memory_max_node_share": 0.5,
        **config,
    }
    world = World(nodes=3, topics={"test": 3}, **given)
    world.cluster.down(AWAY)
    world.settle()
    return world


def fill(world: World, partition: int | None = AWAY) -> int:
    """Records of a batch each until one is refused; how many were taken."""
    for taken in range(100):
        try:
            world.producer.send_nowait("test", bytes(900), partition=partition)
        except BufferExhaustedError:
            return taken
        world.settle(2)
    return 100


def held(world: World) -> dict[int, int]:
    return dict(world.pool.holders())


def test_it_gets_no_more_than_its_share_and_the_others_all_they_need() -> None:
    world = world_without_a_node()
    assert fill(world) == 5
    assert held(world) == {AWAY: 5 * BATCH}
    for number in range(60):
        future = world.send(bytes(900), partition=number % 2)
        world.settle(4)
        assert future.result(0).offset == number // 2
    assert held(world) == {AWAY: 5 * BATCH}


def test_off_by_default_it_takes_everything() -> None:
    world = world_without_a_node(buffer_memory_max_node_share=1)
    assert fill(world) == 10
    assert held(world) == {AWAY: 10 * BATCH}
    with pytest.raises(BufferExhaustedError, match=f"held: {10 * BATCH} for node {AWAY}"):
        world.producer.send_nowait("test", b"", partition=0)


def test_the_error_names_the_node_and_its_share() -> None:
    world = world_without_a_node(max_block_ms=0)
    fill(world)
    error = world.send(bytes(900), partition=AWAY).exception(0)
    assert isinstance(error, BufferExhaustedError)
    assert error.message.startswith("Failed to allocate memory within the configured max blocking time 0 ms. ")
    assert f"Node {AWAY} holds 5000 bytes, and its share is 5000 (buffer.memory.max.node.share)" in error.message
    assert error.context["node"] == AWAY and error.context["phase"] == "waiting for memory"
    assert "DisconnectError" in str(error.context["last_error"])


def test_records_for_any_partition_go_where_there_is_room() -> None:
    world = world_without_a_node()
    fill(world)
    for _ in range(30):
        future = world.producer.send_nowait("test", bytes(900))
        world.settle(4)
        assert future.result(0).partition != AWAY


def test_what_waits_counts_for_the_new_leader_once_it_moves() -> None:
    world = world_without_a_node()
    fill(world)
    world.cluster.move("test", AWAY, 0)
    world.metadata.request_update(False)
    world.until(lambda: AWAY not in held(world) or len(world.values("test", AWAY)) == 5)
    world.run(2000)
    assert len(world.values("test", AWAY)) == 5
    assert held(world) == {}
    assert world.pool.available() == world.pool.total


def test_what_waits_takes_of_its_new_leaders_share() -> None:
    world = world_without_a_node()
    fill(world)
    world.cluster.down(0)
    world.cluster.move("test", AWAY, 0)
    world.metadata.request_update(False)
    world.until(lambda: AWAY not in held(world))
    assert held(world) == {0: 5 * BATCH}
    assert fill(world, partition=0) == 0


def test_its_batches_expire_by_the_clock_and_its_share_is_free_again() -> None:
    world = world_without_a_node()
    fill(world)
    world.run(11_000, 500)
    assert (held(world), world.pool.available()) == ({}, world.pool.total)
    assert fill(world) == 5


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_callbacks_of_what_waits_leave_the_others_their_part(share: float) -> None:
    """What fills batches may overdraw a share, but not by what the other nodes live on."""
    world = world_without_a_node(buffer_memory=200 * BATCH, buffer_memory_max_node_share=share)
    with contextlib.suppress(BufferExhaustedError):
        for _ in range(1000):
            world.producer.send_nowait("test", bytes(20), partition=AWAY, on_delivery=lambda *_: None)
    limit = int(share * world.pool.total)
    assert limit - BATCH < held(world)[AWAY] <= limit + world.pool.share_overdraft
    for number in range(60):
        future = world.producer.send_nowait("test", bytes(900), partition=number % 2, on_delivery=lambda *_: None)
        world.settle(4)
        assert future.result(0).offset == number // 2
