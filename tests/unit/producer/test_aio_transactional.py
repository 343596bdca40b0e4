"""Transactions for asyncio: what commits, what aborts, and what a cancelled block leaves."""

from __future__ import annotations

import asyncio

import pytest

from forebay.errors import (
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
)
from forebay.model import TopicPartition, TransactionIdentity
from forebay.producer.aio import AsyncKafkaProducer
from tests.fakes.broker import INIT_PRODUCER_ID
from tests.fakes.coordinator import END_TXN, TransactionalWorld
from tests.fakes.loop import drive
from tests.fakes.world import World


def ours(world: World) -> AsyncKafkaProducer:
    return AsyncKafkaProducer._around(world.producer)


def test_a_transaction_is_committed() -> None:
    world = TransactionalWorld(2, ready=False)
    producer = ours(world)

    async def main() -> None:
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send("test", b"a", partition=0)
            await producer.send_offsets_to_transaction({TopicPartition("in", 0): 5}, "group")
            await producer.send_offsets_to_transaction({}, "group")

    drive(world, main)
    assert world.committed() == [b"a"]


def test_a_transaction_is_left_to_another_process() -> None:
    world = TransactionalWorld(2)
    producer = ours(world)

    async def main() -> TransactionIdentity:
        producer.begin_transaction()
        await producer.send_and_wait("test", b"a", partition=0)
        return producer.detach_transaction()

    held = (producer.producer_id, producer.producer_epoch, producer.transaction_version)
    identity = drive(world, main)
    assert (identity.transactional_id, identity.producer_id, identity.producer_epoch) == (
        producer.transactional_id, *held[:2],
    )  # fmt: skip
    assert held[2] == 2
    producer.set_transactional_id("another")
    assert producer.transactional_id == "another"


def test_a_block_that_raises_aborts() -> None:
    world = TransactionalWorld(2)
    producer = ours(world)

    async def main() -> None:
        async with producer.transaction():
            await producer.send_and_wait("test", b"a", partition=0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        drive(world, main)
    assert (world.committed(), world.state) == ([], "READY")


def test_a_block_that_is_cancelled_aborts() -> None:
    world = TransactionalWorld(2)
    producer = ours(world)

    async def work() -> None:
        async with producer.transaction():
            await producer.send_and_wait("test", b"a", partition=0)
            await asyncio.sleep(1000)

    async def main() -> None:
        task = asyncio.ensure_future(work())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    drive(world, main)
    assert (world.committed(), world.state) == ([], "READY")


def test_a_commit_that_timed_out_is_repeated() -> None:
    world = TransactionalWorld(2)
    producer = ours(world)
    world.cluster.brokers[0].held.add(END_TXN)

    async def main() -> None:
        producer.begin_transaction()
        await producer.send("test", b"a", partition=0)
        with pytest.raises(KafkaTimeoutError, match="call it again"):
            await producer.commit_transaction(0.1)
        world.cluster.brokers[0].release()
        await producer.commit_transaction()

    drive(world, main)
    assert world.committed() == [b"a"]


def test_a_transaction_is_aborted_by_hand() -> None:
    world = TransactionalWorld(2)
    producer = ours(world)

    async def main() -> None:
        producer.begin_transaction()
        await producer.send_and_wait("test", b"a", partition=0)
        await producer.abort_transaction()

    drive(world, main)
    assert world.committed() == []


def test_what_the_coordinator_refuses_is_raised() -> None:
    world = TransactionalWorld(2, ready=False)
    producer = ours(world)
    with pytest.raises(IllegalStateError, match="no transactional.id"):
        drive(World(), lambda: ours(World()).init_transactions())
    world.cluster.brokers[0].held.add(INIT_PRODUCER_ID)
    with pytest.raises(KafkaError, match="while awaiting init_transactions"):
        drive(world, lambda: producer.init_transactions(0.05))
