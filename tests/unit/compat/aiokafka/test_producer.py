"""aiokafka's producer on a producer in memory: its life, what it refuses, waits and cancels, and transactions."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest

from forebay._runtime.owner import change_owner
from forebay.compat.aiokafka import AIOKafkaProducer, IllegalOperation, errors
from forebay.compat.aiokafka.producer import _RaisingProducer
from forebay.producer.aio import SENDS_BETWEEN_LOOKS
from tests.fakes.broker import METADATA, Topic
from tests.fakes.coordinator import TransactionalWorld
from tests.fakes.loop import drive
from tests.fakes.world import HandDriven, PumpedThread, World
from tests.unit.compat.aiokafka.test_send import frozen, thaw, used


class Raising(_RaisingProducer, HandDriven):
    """The native producer of a started AIOKafkaProducer, driven by the test."""


def small(**config: Any) -> World:
    """Room for two records of 900 bytes, which the broker does not acknowledge."""
    world = frozen(kind=Raising, batch_size=1000, buffer_memory=2000, **{"max_block_ms": 50, **config})
    for partition in (0, 1):
        world.send(bytes(900), partition=partition)
    world.settle()
    return world


# Life


def test_a_loop_is_needed() -> None:
    with pytest.raises(RuntimeError, match="within an async function or provide loop directly"):
        AIOKafkaProducer()
    loop = asyncio.new_event_loop()
    with pytest.warns(DeprecationWarning, match="`loop`"):
        producer = AIOKafkaProducer(loop=loop)
    loop.run_until_complete(producer.stop())
    loop.close()
    assert producer._closed


def test_old_parameters_warn() -> None:
    async def main() -> None:
        with pytest.warns(DeprecationWarning, match="`api_version`"):
            producer = AIOKafkaProducer(api_version="auto")
        await producer.stop()

    asyncio.run(main())


def test_before_the_start_and_after_the_stop() -> None:
    async def main() -> None:
        producer = AIOKafkaProducer(client_id="me")
        assert repr(producer) == "<AIOKafkaProducer me: not started>"
        await producer.flush()
        assert producer.create_batch().append(timestamp=None, key=None, value=b"v") is not None
        for call in (producer.send("t", b"v"), producer.partitions_for("t"), producer.send_and_wait("t", b"v")):
            with pytest.raises(IllegalOperation, match="await producer.start()"):
                await call
        with pytest.raises(IllegalOperation, match="not started"):
            _ = producer.native
        await producer.stop()
        await producer.stop()
        assert repr(producer) == "<AIOKafkaProducer me: stopped>"
        with pytest.raises(errors.ProducerClosed):
            await producer.send("t", b"v")
        with pytest.raises(IllegalOperation, match="started once"):
            await producer.start()

    asyncio.run(main())


def test_names_are_numbered() -> None:
    async def main() -> list[str]:
        made = [AIOKafkaProducer() for _ in range(2)]
        for producer in made:
            await producer.stop()
        return [producer._options.native["client.id"] for producer in made]

    first, second = asyncio.run(main())
    assert first.startswith("aiokafka-producer-") and int(second[18:]) == int(first[18:]) + 1


def test_it_belongs_to_one_loop() -> None:
    loop = asyncio.new_event_loop()
    with pytest.warns(DeprecationWarning, match="`loop`"):
        producer = AIOKafkaProducer(loop=loop)
    with pytest.raises(IllegalOperation, match="another event loop"):
        asyncio.run(producer.start())
    asyncio.run(producer.stop())
    loop.close()


def test_one_that_was_not_stopped_warns() -> None:
    told: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
        with pytest.warns(ResourceWarning, match="Unclosed AIOKafkaProducer"):
            AIOKafkaProducer()  # and nothing refers to it

    asyncio.run(main())
    assert [context["message"] for context in told] == ["Unclosed AIOKafkaProducer"]


def test_stop_delivers_what_was_accepted() -> None:
    world = World(linger_ms=4000)
    PumpedThread(world)

    async def main() -> Any:
        producer = AIOKafkaProducer._around(world.producer)
        sent = await producer.send("test", b"a", partition=0)
        for part in (world.sender, world.accumulator.schedule, world.accumulator.drain, world.parts.client):
            change_owner(part)  # closing takes the turns on a thread of the loop's pool
        await producer.stop()
        with pytest.raises(errors.ProducerClosed):
            await producer.send("test", b"a")
        return await sent

    assert asyncio.run(main()).offset == 0 and world.values() == [b"a"]


# Sending


def test_serializers_get_each_key_and_value_once() -> None:
    world, asked = World(known=False), []

    def key_of(key: Any) -> bytes | None:
        asked.append(key)
        return None if key is None else key.upper().encode()

    async def use(producer: AIOKafkaProducer) -> None:
        await producer.send("test", {"a": 1}, "k", 0)
        await producer.send_and_wait("test", 5, partition=0)

    used(world, use, key_serializer=key_of, value_serializer=lambda value: repr(value).encode())
    assert asked == ["k", None] and world.values() == [b"{'a': 1}", b"5"]


def test_a_serializers_error_is_the_callers() -> None:
    def fails(value: Any) -> bytes:
        raise ZeroDivisionError

    async def use(producer: AIOKafkaProducer) -> None:
        with pytest.raises(ZeroDivisionError):
            await producer.send("test", 5)

    used(World(), use, value_serializer=fails)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({}, AssertionError, "Need at least one: key or value"),
        ({"value": "text"}, TypeError, "value_serializer"),
        ({"value": b"v", "partition": 2}, AssertionError, "topic test has 2 partitions, not 2"),
        ({"value": b"v", "partition": -1}, ValueError, "Invalid partition: -1"),
        ({"value": b"v", "timestamp_ms": -1}, ValueError, "Invalid timestamp"),
        ({"value": b"v", "headers": [("h", "text")]}, TypeError, "header 'h'"),
        ({"value": bytes(2000)}, errors.MessageSizeTooLargeError, "larger than 1000"),
    ],
)
def test_what_cannot_be_sent_is_raised(given: dict[str, Any], kind: type[Exception], text: str) -> None:
    world = World(kind=Raising, max_request_size=1000)

    async def use(producer: AIOKafkaProducer) -> None:
        with pytest.raises(kind, match=text):
            await producer.send("test", **given)

    used(world, use)
    assert not world.accumulator.has_incomplete()


def test_a_topic_is_a_string() -> None:
    async def use(producer: AIOKafkaProducer) -> None:
        with pytest.raises(TypeError, match="topic must be a str, got int"):
            await producer.send(5, b"v")  # type: ignore[arg-type]

    used(World(), use)


def test_topics_that_do_not_come() -> None:
    world = World(kind=Raising, known=False)
    world.cluster.topics["secret"] = Topic(error=29)

    async def use(producer: AIOKafkaProducer) -> None:
        for call in (producer.send("absent", b"v"), producer.partitions_for("absent")):
            with pytest.raises(errors.UnknownTopicOrPartitionError, match="after 1000 ms"):
                await call
        with pytest.raises(errors.TopicAuthorizationFailedError):
            await producer.send("secret", b"v")
        assert await producer.partitions_for("test") == {0, 1}

    used(world, use)


def test_room_that_does_not_come_is_raised() -> None:
    world = small()

    async def use(producer: AIOKafkaProducer) -> None:
        with pytest.raises(errors.KafkaTimeoutError, match="max blocking time 50 ms"):
            await producer.send("test", bytes(900), partition=0)

    used(world, use)
    assert world.pool.queued() == 0


def test_a_cancelled_send_gives_its_place_back_and_sends_nothing() -> None:
    world = small(max_block_ms=60_000)

    async def use(producer: AIOKafkaProducer) -> None:
        waiting = asyncio.ensure_future(producer.send("test", bytes(901), partition=0))
        await asyncio.sleep(0.01)
        assert world.pool.queued() == 1
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert world.pool.queued() == 0
        thaw(world)
        await producer.flush()

    used(world, use)
    assert [len(value or b"") for value in world.values()] == [900] and world.pool.available() == 2000


def test_random_cancellations_lose_nothing_and_double_nothing() -> None:
    """A record is in the log once if its send returned, and not at all if it was cancelled; no memory is missing."""
    world = World(kind=Raising, batch_size=1000, buffer_memory=4000, max_block_ms=60_000)
    chance = random.Random(11)
    count = 1000
    taken: set[int] = set()

    async def send(producer: AIOKafkaProducer, number: int) -> None:
        value = b"%06d" % number + bytes(chance.randrange(400))
        sent: Any
        if number % 3:
            sent = await producer.send("test", value, partition=number % 2)
        else:
            batch = producer.create_batch()
            batch.append(key=None, value=value, timestamp=None)
            sent = await producer.send_batch(batch, "test", partition=number % 2)
        taken.add(number)
        await sent

    async def use(producer: AIOKafkaProducer) -> None:
        tasks: list[asyncio.Task[None]] = []
        for number in range(count):
            tasks.append(asyncio.ensure_future(send(producer, number)))
            if chance.random() < 0.3:
                await asyncio.sleep(0)
            if chance.random() < 0.5:
                chance.choice(tasks[-20:]).cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await producer.flush()

    used(world, use)
    written = [int((value or b"")[:6]) for partition in (0, 1) for value in world.values("test", partition)]
    assert sorted(written) == sorted(taken) and 0 < len(taken) < count
    assert (world.pool.available(), world.pool.queued()) == (4000, 0)


def test_sends_that_need_no_wait_let_other_tasks_run() -> None:
    world = World()
    ran: list[float] = []

    def serialize(value: bytes) -> bytes:
        world.advance(0.25)  # what a send takes here
        return value

    async def other() -> None:
        while True:
            ran.append(world.now)
            await asyncio.sleep(0)

    async def use(producer: AIOKafkaProducer) -> None:
        task = asyncio.ensure_future(other())
        await asyncio.sleep(0)
        for _ in range(10 * SENDS_BETWEEN_LOOKS):
            await producer.send("test", b"a")
        task.cancel()

    used(world, use, value_serializer=serialize)
    assert max(later - earlier for earlier, later in itertools.pairwise(ran)) <= 5


def test_flush_waits_for_the_outcomes() -> None:
    world = World(linger_ms=4000)

    async def use(producer: AIOKafkaProducer) -> bool:
        sent = await producer.send("test", b"a")
        await producer.flush()
        return sent.done()

    assert used(world, use)


# The start, as far as it needs no socket


def test_it_waits_for_the_cluster() -> None:
    world = World(known=False)

    async def main() -> set[int]:
        producer = AIOKafkaProducer(bootstrap_servers="unused")
        await producer._connect(world.producer)
        producer._closed = True
        return await producer.partitions_for("test")

    assert drive(world, main) == {0, 1}


def test_a_silent_broker() -> None:
    world = World(known=False)
    world.cluster.brokers[0].held.add(METADATA)

    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers="unused")
        producer._closed = True
        await producer._connect(world.producer)

    with pytest.raises(errors.KafkaConnectionError, match="Unable to bootstrap from .*: no answer in time"):
        drive(world, main)


def test_transactions_are_initialized() -> None:
    world = TransactionalWorld(2, ready=False)

    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers="unused", transactional_id="foobar")
        producer._closed = True
        await producer._connect(world.producer)
        async with producer.transaction():
            await producer.send("test", b"a", partition=0)

    drive(world, main)
    assert world.committed() == [b"a"]
