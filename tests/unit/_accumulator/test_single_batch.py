"""Batches whose records are all there: one batch each, in the partition's order, and no memory is lost."""

from __future__ import annotations

from typing import Any

import pytest

from forebay._delivery.future import RecordFuture
from forebay._runtime.ticket import ThreadTicket
from forebay.compat.aiokafka._batch import BatchBuilder, PendingBatch
from forebay.errors import IllegalArgumentError, IllegalStateError, ProducerClosedError
from tests.fakes.broker import PRODUCE
from tests.fakes.world import World


def pending(world: World, *values: bytes, partition: int = 0) -> PendingBatch:
    builder = BatchBuilder(1 << 30, lambda: 77)
    for value in values:
        builder.append(key=None, value=value, timestamp=None)
    return PendingBatch(world.producer, "test", partition, builder)


def append(world: World, *values: bytes, partition: int = 0) -> RecordFuture | None:
    """The first record's future; None if there is no memory."""
    batch = pending(world, *values, partition=partition)
    ticket = ThreadTicket()
    try:
        return batch.step(ticket)
    finally:
        batch.end(ticket)


def counts(world: World) -> list[int]:
    return [batch.record_count for batch in world.queue().batches]


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
def test_no_other_record_comes_into_it(codec: str) -> None:
    world = World(linger_ms=1000, compression_type=codec)
    values = [b"%03d" % number + bytes(40) for number in range(200)]
    first = world.send(b"before")
    whole = append(world, *values)
    second = append(world, b"second")
    last = world.send(b"after")
    assert whole is not None and second is not None and counts(world) == [1, 200, 1, 1]
    world.run(1100)
    assert [future.result(0).offset for future in (first, whole, second, last)] == [0, 1, 201, 202]
    assert world.values() == [b"before", *values, b"second", b"after"]
    assert world.pool.available() == world.pool.total and not world.accumulator.has_incomplete()


def test_it_does_not_linger() -> None:
    world = World(linger_ms=5000)
    append(world, b"a", b"b")
    world.settle()
    assert world.values() == [b"a", b"b"]


def test_one_larger_than_a_batch_gets_memory_of_its_own() -> None:
    world = World(batch_size=100)
    whole = append(world, bytes(5000), b"b")
    world.settle()
    assert whole is not None and whole.result(0).offset == 0 and world.values() == [bytes(5000), b"b"]
    assert world.pool.available() == world.pool.total


def test_one_larger_than_the_pool_is_refused() -> None:
    world = World(batch_size=100, buffer_memory=2000)
    with pytest.raises(IllegalArgumentError, match="hard limit of 2000"):
        append(world, bytes(3000))
    assert (world.pool.available(), world.pool.queued()) == (2000, 0)


def test_it_waits_in_line_for_memory() -> None:
    world = World(batch_size=1000, buffer_memory=2000)
    world.cluster.brokers[0].held.add(PRODUCE)
    for _ in range(2):
        append(world, bytes(900))
    batch, ticket = pending(world, b"third"), ThreadTicket()
    assert batch.step(ticket) is None and batch.step(ticket) is None and world.pool.queued() == 1
    world.settle()
    world.cluster.brokers[0].held.discard(PRODUCE)
    world.cluster.brokers[0].release()
    world.settle()
    third = batch.step(ticket)
    batch.end(ticket)
    world.settle()
    assert third is not None and third.result(0).offset == 2
    assert (world.pool.available(), world.pool.queued()) == (2000, 0)


def test_a_closed_producer_takes_none() -> None:
    world = World(batch_size=1000, buffer_memory=2000)
    world.accumulator.appender.incomplete.close()
    with pytest.raises(ProducerClosedError):
        append(world, b"a")
    assert world.pool.available() == 2000 and not world.accumulator.has_incomplete()


def test_a_size_that_is_wrong_loses_nothing_in_silence() -> None:
    world = World(batch_size=100)
    batch: Any = pending(world, b"a")
    batch.builder._records.append((77, None, bytes(200), b"\x00"))
    with pytest.raises(IllegalStateError, match="2 records do not fit into 69 bytes"):
        batch.step(ThreadTicket())
    assert world.pool.available() == world.pool.total and not world.accumulator.has_incomplete()
