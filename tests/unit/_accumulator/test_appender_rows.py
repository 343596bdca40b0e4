"""Many rows into an open batch: it is full where single records would have filled it, and the same follows from it."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

from forebay.producer._columns import BatchDelivery, append_columns, sink_columns
from tests.fakes.world import World


def take(world: World, values: list[bytes], partition: int | None = 0) -> BatchDelivery:
    numbers = pa.array([partition] * len(values), pa.int32())
    timestamps = pa.array([5] * len(values), pa.int64())
    batch = pa.RecordBatch.from_pydict(
        {"value": pa.array(values, pa.binary()), "partition": numbers, "timestamp": timestamps}
    )
    deliveries = BatchDelivery()
    append_columns(world.producer, sink_columns(batch, "t"), deliveries)
    return deliveries


def waiting(world: World, partition: int = 0) -> list[tuple[int, bool]]:
    """Records of each batch that was not sent yet, and whether it takes no more."""
    return [(batch.record_count, batch.is_full()) for batch in world.queue("t", partition).batches]


def mixed(count: int, *sizes: int) -> list[bytes]:
    return [bytes(size) for size, _ in zip(itertools.cycle(sizes), range(count), strict=False)]


def both(values: list[bytes], before: list[bytes], **options: Any) -> tuple[list[Any], list[Any]]:
    """The batches of the columns' way and of send()'s; each producer has learned from ``before``."""
    worlds = [World(topics={"t": 1}, buffer_memory=1 << 26, **options) for _ in range(2)]
    for world in worlds:
        for value in before:
            world.producer.send("t", value, partition=0, timestamp=5)
        while world.accumulator.has_incomplete():
            world.settle()
    take(worlds[0], values)
    for value in values:
        worlds[1].producer.send("t", value, partition=0, timestamp=5)
    for world in worlds:
        while world.accumulator.has_incomplete():
            world.settle()
        assert world.pool.available() == 1 << 26
    first, second = (world.cluster.logs["t", 0].batches for world in worlds)
    return first, second


@pytest.mark.parametrize("sizes", [(10,), (10, 900, 40), (0, 1, 2, 3), (2000, 5)])
@pytest.mark.parametrize("batch_size", [1, 100, 1000, 1061])
def test_batches_end_where_those_of_send_end(sizes: tuple[int, ...], batch_size: int) -> None:
    found, expected = both(mixed(500, *sizes), [], batch_size=batch_size)
    assert found == expected
    assert all(batch.size <= batch_size or batch.count == 1 for batch in found)


@pytest.mark.parametrize("sizes", [(10,), (10, 20, 10, 30, 900), (5, 1500, 700), (3, 3, 3, 3, 1900)])
@pytest.mark.parametrize("max_request_size", [4000, 1 << 20])
def test_compressed_batches_end_there_too_once_the_ratio_has_fallen(
    sizes: tuple[int, ...], max_request_size: int
) -> None:
    """The next record counts uncompressed, the others by the ratio; and all of them uncompressed fit a request."""
    options = {"compression_type": "zstd", "batch_size": 3000, "max_request_size": max_request_size}
    found, expected = both(mixed(800, *sizes), [bytes(2000)] * 120, **options)
    assert found == expected
    assert max(sum(one.size for one in batch.records) for batch in found) > 3000


def test_a_batch_that_is_exactly_full_is_closed_and_the_sender_is_woken() -> None:
    world = World(topics={"t": 1}, batch_size=61 + 10 * 17, linger_ms=1000)
    assert take(world, [bytes(10)] * 9).rows == 9
    assert waiting(world) == [(9, False)]
    world.selector._woken = False
    assert take(world, [bytes(10)]).rows == 1
    assert waiting(world) == [(10, True)]
    assert world.selector._woken
    assert take(world, [bytes(10)] * 12).rows == 12
    assert waiting(world) == [(10, True), (10, True), (2, False)]


def test_rows_that_go_anywhere_leave_a_partition_that_had_its_share() -> None:
    world = World(topics={"t": 4}, batch_size=1000, linger_ms=1000)
    assert take(world, [bytes(20)] * 1000, None).rows == 1000
    held = [waiting(world, partition) for partition in range(4)]
    assert sum(count for batches in held for count, _ in batches) == 1000
    assert sum(len(batches) > 0 for batches in held) > 1
    # None is left half full behind: it moves on where a batch ends.
    assert sum(not full for batches in held for _, full in batches) <= 1


def test_a_batch_that_was_closed_for_appends_takes_no_row() -> None:
    world = World(topics={"t": 1}, linger_ms=1000)
    take(world, [b"v"] * 3)
    world.accumulator.seal()
    world.accumulator.unseal()
    take(world, [b"v"] * 5)
    assert waiting(world) == [(3, True), (5, False)]


def test_a_batch_that_overdraws_too_much_takes_no_row() -> None:
    world = World(topics={"t": 1}, linger_ms=1000)
    take(world, [b"v"] * 3)
    (batch,) = world.queue("t").batches
    batch.account.charge(1 << 40)
    batch.account.charge_callback(print)
    batch.account.charge(-(1 << 40))
    assert batch.account.stopped
    take(world, [b"v"] * 5)
    assert waiting(world) == [(3, True), (5, False)]
