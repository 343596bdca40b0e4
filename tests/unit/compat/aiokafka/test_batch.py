"""Batches that users put together: their limits, and that each is one batch of the log."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.producer.message_accumulator import BatchBuilder as Original

from forebay.compat.aiokafka import AIOKafkaProducer, IllegalOperation
from forebay.compat.aiokafka._batch import AppendedMetadata, BatchBuilder
from forebay.compat.aiokafka.errors import KafkaTimeoutError, ProducerClosed
from tests.fakes.broker import PRODUCE
from tests.fakes.coordinator import TransactionalWorld
from tests.fakes.world import World
from tests.unit.compat.aiokafka.test_send import frozen, thaw, used


def batch(*values: bytes | None, limit: int = 1000) -> BatchBuilder:
    builder = BatchBuilder(limit, lambda: 77)
    for value in values:
        assert builder.append(key=None, value=value, timestamp=None) is not None
    return builder


def test_what_append_tells() -> None:
    builder = batch()
    assert (builder.size(), builder.record_count(), builder.closed()) == (61, 0, False)
    first = builder.append(timestamp=5, key=b"k", value=bytearray(b"v"), headers=[("h", b"x")])
    assert first == AppendedMetadata(0, None, 13, 5)
    second = builder.append(timestamp=None, key=None, value=None)
    assert second is not None and (second.offset, second.timestamp) == (1, 77)
    assert builder.size() == 61 + 13 + second.size and builder.record_count() == 2
    builder.close()
    assert builder.closed() and builder.append(timestamp=None, key=None, value=b"v") is None


@pytest.mark.parametrize("size", [0, 1, 50, 63, 64, 200, 16_000, 17_000])
def test_it_is_full_where_the_originals_is(size: int) -> None:
    ours, theirs = BatchBuilder(16_384, lambda: 77), Original(16_384, 0)
    for number in range(3000):
        given: Any = {"timestamp": 1000 + number * 7, "key": b"k" * (number % 5), "value": bytes(size)}
        given["headers"] = [("h", b"x")] if number % 3 else []
        found, expected = ours.append(**given), theirs.append(**given)
        assert (found is None) == (expected is None)
        if found is None:
            break
        assert (found.offset, found.size, found.timestamp) == (expected.offset, expected.size, expected.timestamp)
        assert ours.size() == theirs.size()
    assert ours.closed() and theirs.closed() and ours.record_count() == theirs.record_count() > 0


def test_serializers_make_the_bytes() -> None:
    builder = BatchBuilder(1000, lambda: 77, lambda key: key.upper().encode(), lambda value: str(value).encode())
    builder.append(timestamp=None, key="k", value=5)
    assert builder._records == [(77, b"K", b"5", b"\x00")]


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"key": None, "value": "text"}, TypeError, "the value of a message must be bytes or None, got str"),
        ({"key": 5, "value": b"v"}, TypeError, "the key of a message must be bytes"),
        ({"key": None, "value": b"v", "timestamp": -5}, ValueError, "Invalid timestamp: -5"),
        ({"key": None, "value": b"v", "timestamp": 1.5}, TypeError, "timestamp must be an int"),
        ({"key": None, "value": b"v", "headers": [("h", "text")]}, TypeError, "header 'h'"),
    ],
)
def test_what_cannot_be_appended(given: dict[str, Any], kind: type[Exception], text: str) -> None:
    builder = batch()
    with pytest.raises(kind, match=text):
        builder.append(**{"timestamp": None, **given})
    assert (builder.record_count(), builder.size()) == (0, 61)


def test_headers_and_times_go_along() -> None:
    world = World()
    builder = BatchBuilder(1000, lambda: 77)
    builder.append(timestamp=5, key=b"k", value=b"v", headers=[("h", b"x")])
    builder.append(timestamp=3, key=None, value=None)

    async def use(producer: AIOKafkaProducer) -> Any:
        return await (await producer.send_batch(builder, "test", partition=1))

    found = used(world, use)
    assert (found.partition, found.offset, found.timestamp) == (1, 0, 5) and builder.closed()
    records = world.cluster.logs["test", 1].records
    assert [(each.timestamp, each.key, each.value, list(each.headers)) for each in records] == [
        (5, b"k", b"v", [("h", b"x")]),
        (3, None, None, []),
    ]


def test_without_a_partition_the_partitioner_chooses() -> None:
    world = World()

    async def use(producer: AIOKafkaProducer) -> Any:
        return await (await producer.send_batch(batch(b"v"), "test", partition=None))

    assert used(world, use, partitioner=lambda key, every, available: every[-1]).partition == 1


def test_an_empty_batch_is_done_at_once() -> None:
    world = World()

    async def use(producer: AIOKafkaProducer) -> Any:
        future = await producer.send_batch(producer.create_batch(), "test", partition=0)
        return future.done(), await future

    assert used(world, use) == (True, None) and world.values() == []


def test_it_waits_for_memory_and_gives_its_place_back() -> None:
    world = frozen(batch_size=1000, buffer_memory=2000, max_block_ms=60_000)

    async def use(producer: AIOKafkaProducer) -> None:
        for _ in range(2):
            await producer.send_batch(batch(bytes(900)), "test", partition=0)
        waiting = asyncio.ensure_future(producer.send_batch(batch(b"cancelled"), "test", partition=0))
        other = asyncio.ensure_future(producer.send_batch(batch(b"other"), "test", partition=0))
        await asyncio.sleep(0.01)
        assert world.pool.queued() == 2
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        thaw(world)
        assert (await (await other)).offset == 2

    used(world, use)
    assert world.values() == [bytes(900), bytes(900), b"other"]
    assert (world.pool.available(), world.pool.queued()) == (2000, 0)


def test_memory_that_does_not_come() -> None:
    world = frozen(batch_size=1000, buffer_memory=2000, max_block_ms=50)

    async def use(producer: AIOKafkaProducer) -> None:
        for _ in range(2):
            await producer.send_batch(batch(bytes(900)), "test", partition=0)
        with pytest.raises(KafkaTimeoutError, match="No room for a batch of 97. bytes within 50 ms"):
            await producer.send_batch(batch(bytes(900)), "test", partition=0)
        with pytest.raises(ValueError, match="buffer.memory"):
            await producer.send_batch(batch(bytes(3000)), "test", partition=0)

    used(world, use)
    assert world.pool.queued() == 0


def test_a_stopped_producer_and_no_transaction() -> None:
    world = TransactionalWorld(2)

    async def use(producer: AIOKafkaProducer) -> None:
        with pytest.raises(IllegalOperation):
            await producer.send_batch(batch(b"v"), "test", partition=0)
        world.begin()
        await producer.send_batch(batch(b"v"), "test", partition=0)
        await producer.commit_transaction()
        waiting = asyncio.ensure_future(producer.send_batch(batch(b"late"), "test", partition=0))
        world.producer._set_state(1)
        world.accumulator.close()
        with pytest.raises(ProducerClosed):
            await waiting

    used(world, use, transactional_id="foobar")
    assert world.committed() == [b"v"] and not world.accumulator.has_incomplete()
    assert PRODUCE not in world.cluster.brokers[0].held
