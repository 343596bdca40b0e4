"""Transactions as aiokafka's users write them: their states, what cancelling leaves, and offsets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from forebay.compat.aiokafka import AIOKafkaProducer, IllegalOperation, TopicPartition, errors
from forebay.compat.aiokafka._transactions import TransactionContext
from tests.fakes.coordinator import END_TXN, TransactionalWorld
from tests.fakes.world import World
from tests.unit.compat.aiokafka.test_producer import Raising
from tests.unit.compat.aiokafka.test_send import used


def test_they_need_an_id() -> None:
    async def use(producer: AIOKafkaProducer) -> None:
        calls = (
            producer.begin_transaction(),
            producer.commit_transaction(),
            producer.abort_transaction(),
            producer.send_offsets_to_transaction({}, "group"),
            producer.transaction().__aenter__(),
        )
        for call in calls:
            with pytest.raises(IllegalOperation, match="transactional_id"):
                await call

    used(World(), use)


def test_a_transaction_is_committed() -> None:
    world = TransactionalWorld(2)

    async def use(producer: AIOKafkaProducer) -> None:
        with pytest.raises(IllegalOperation):
            await producer.send("test", b"before", partition=0)
        with pytest.raises(IllegalOperation):
            await producer.commit_transaction()
        async with producer.transaction() as context:
            assert isinstance(context, TransactionContext)
            sent = await producer.send("test", b"a", partition=0)
            await producer.send_offsets_to_transaction({TopicPartition("in", 0): 5}, "group")
            await producer.send_offsets_to_transaction({TopicPartition("in", 1): (6, "text")}, "group")
            with pytest.raises(IllegalOperation):
                await producer.begin_transaction()
        assert sent.done()

    used(world, use, transactional_id="foobar")
    assert world.committed() == [b"a"]


@pytest.mark.parametrize(
    ("offsets", "group", "kind"),
    [
        ({}, "group", ValueError),
        ([], "group", ValueError),
        ({TopicPartition("in", 0): 5}, "", ValueError),
        ({TopicPartition("in", 0): 5}, None, ValueError),
        ({TopicPartition("in", 0): -5}, "group", ValueError),
        ({("in", 0): 5}, "group", TypeError),
        ({TopicPartition("in", 0): (5, None)}, "group", TypeError),
    ],
)
def test_offsets_that_cannot_be(offsets: Any, group: Any, kind: type[Exception]) -> None:
    async def use(producer: AIOKafkaProducer) -> None:
        with pytest.raises(IllegalOperation, match="Not in the middle"):
            await producer.send_offsets_to_transaction(offsets, group)
        await producer.begin_transaction()
        with pytest.raises(kind):
            await producer.send_offsets_to_transaction(offsets, group)

    used(TransactionalWorld(2), use, transactional_id="foobar")


def test_a_block_that_raises_or_is_cancelled_aborts() -> None:
    world = TransactionalWorld(2)

    async def use(producer: AIOKafkaProducer) -> None:
        async def work(seconds: int) -> None:
            async with producer.transaction():
                await producer.send_and_wait("test", b"a", partition=0)
                await asyncio.sleep(seconds)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await work(0)
        task = asyncio.ensure_future(work(1000))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    used(world, use, transactional_id="foobar")
    assert (world.committed(), world.state) == ([], "READY")


@pytest.mark.parametrize("name", ["commit_transaction", "abort_transaction"])
def test_a_cancelled_end_goes_on(name: str) -> None:
    world = TransactionalWorld(2)

    async def use(producer: AIOKafkaProducer) -> None:
        await producer.begin_transaction()
        await producer.send_and_wait("test", b"a", partition=0)
        world.cluster.brokers[0].held.add(END_TXN)
        task = asyncio.ensure_future(getattr(producer, name)())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(IllegalOperation):
            await producer.send("test", b"b", partition=0)
        world.cluster.brokers[0].held.discard(END_TXN)
        world.cluster.brokers[0].release()
        await asyncio.sleep(0.05)
        async with producer.transaction():
            await producer.send("test", b"c", partition=0)

    used(world, use, transactional_id="foobar")
    assert world.committed() == ([b"a", b"c"] if name == "commit_transaction" else [b"c"])


def test_a_fenced_producer() -> None:
    world = TransactionalWorld(2)

    world.coordinator.fail(END_TXN, 90)

    async def use(producer: AIOKafkaProducer) -> None:
        async def work(error: type[Exception] | None) -> None:
            async with producer.transaction():
                await producer.send_and_wait("test", b"a", partition=0)
                if error is not None:
                    raise error

        with pytest.raises(errors.ProducerFenced):
            await work(None)
        with pytest.raises(errors.ProducerFenced):
            await producer.begin_transaction()
        # The block's own error is not hidden by an abort that cannot be.
        await TransactionContext(producer).__aexit__(ZeroDivisionError, None, None)

    used(world, use, transactional_id="foobar")
    assert world.committed() == []


def test_a_record_that_failed_fails_the_commit() -> None:
    world = TransactionalWorld(2, kind=Raising)
    world.cluster.fail("test", 0, 87)

    async def use(producer: AIOKafkaProducer) -> None:
        await producer.begin_transaction()
        sent = await producer.send("test", b"a", partition=0)
        with pytest.raises(errors.KafkaError):
            await producer.commit_transaction()
        with pytest.raises(errors.KafkaError):
            await sent
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send("test", b"b", partition=0)

    used(world, use, transactional_id="foobar")
    assert world.committed() == [b"b"]
