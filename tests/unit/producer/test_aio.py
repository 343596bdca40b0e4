"""The producer for asyncio: what it awaits, what cancelling leaves, and where its callbacks run."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
from dataclasses import replace
from typing import Any

import pytest

from forebay._delivery.future import RecordFuture
from forebay.errors import (
    BufferExhaustedError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaTimeoutError,
    ProducerClosedError,
    PurgedError,
    SerializationError,
    TopicAuthorizationError,
)
from forebay.model import DeliveryReport, ProducerRecord, RecordMetadata
from forebay.producer import KafkaProducer
from forebay.producer._transactional import TransactionalCalls
from forebay.producer.aio import SENDS_BETWEEN_LOOKS, AsyncKafkaProducer
from tests.fakes.broker import METADATA, PRODUCE, Topic
from tests.fakes.loop import drive
from tests.fakes.telemetry import INSTANCE_TEXT, world_with_receiver
from tests.fakes.waiting import Watching
from tests.fakes.world import PumpedThread, World


def ours(world: World) -> AsyncKafkaProducer:
    return AsyncKafkaProducer._around(world.producer)


def small(**config: Any) -> World:
    """Room for two records of 900 bytes, which the broker does not acknowledge until it is told to."""
    world = World(batch_size=1000, buffer_memory=2000, **{"max_block_ms": 50, **config})
    world.cluster.brokers[0].held.add(PRODUCE)
    for partition in (0, 1):
        world.send(bytes(900), partition=partition)
    world.settle()
    return world


def test_it_tells_of_itself_as_the_producer_does() -> None:
    world = World(client_id="me", linger_ms=100)
    producer = ours(world)
    world.send(b"v")
    seen = producer.describe()
    assert (seen.client_id, seen.unfinished) == ("me", 1)
    assert producer.metrics().value("record-send-total") == 0


def test_it_has_what_the_producer_has() -> None:
    names = {name for kind in (KafkaProducer, TransactionalCalls) for name in vars(kind) if not name.startswith("_")}
    assert names - set(dir(AsyncKafkaProducer)) == set()


def test_the_login_is_the_producers() -> None:
    with pytest.raises(IllegalStateError, match="does not log in"):
        ours(World()).set_sasl_credentials("user", "word")


def test_the_id_that_brokers_know_it_by() -> None:
    world, _ = world_with_receiver()
    assert drive(world, lambda: ours(world).client_instance_id(5)) == INSTANCE_TEXT
    assert drive(world, lambda: ours(world).client_instance_id(0)) == INSTANCE_TEXT
    elsewhere = World()
    with pytest.raises(KafkaTimeoutError, match="no connected broker takes client telemetry"):
        drive(elsewhere, lambda: ours(elsewhere).client_instance_id(0.05))


# Sending


def test_a_record_and_its_metadata() -> None:
    world = World()
    producer = ours(world)

    async def main() -> list[RecordMetadata]:
        sent = await producer.send("test", b"a", b"k", headers=[("h", b"1")], partition=1, timestamp=1234)
        assert isinstance(sent, RecordFuture) and not sent.done()
        record = ProducerRecord("test", b"b", partition=1)
        return [await sent, await producer.send_and_wait(record)]

    first, second = drive(world, main)
    assert (first.offset, first.timestamp, second.offset) == (0, 1234, 1)
    assert world.values("test", 1) == [b"a", b"b"]


def test_it_awaits_metadata_of_a_new_topic() -> None:
    world = World(known=False)
    assert drive(world, lambda: ours(world).send_and_wait("test", b"a", partition=0)).offset == 0


def test_it_awaits_memory_in_the_line_of_all() -> None:
    """Two coroutines and a thread's ticket wait; they are served first in, first out."""
    world = small(max_block_ms=60_000)
    producer = ours(world)
    order: list[str] = []

    async def send(name: str) -> None:
        sent = await producer.send("test", bytes(900), partition=0)
        order.append(name)
        await sent

    async def main() -> None:
        first, second = asyncio.ensure_future(send("first")), asyncio.ensure_future(send("second"))
        await asyncio.sleep(0.01)
        assert world.pool.queued() == 2
        world.cluster.brokers[0].release()
        world.cluster.brokers[0].held.discard(PRODUCE)
        await first
        await second

    drive(world, main)
    assert order == ["first", "second"]


def test_memory_that_does_not_come_is_an_error_in_the_future() -> None:
    world = small()
    sent = drive(world, lambda: ours(world).send("test", bytes(900), partition=0))
    error = sent.exception(0)
    assert isinstance(error, BufferExhaustedError) and "max blocking time 50 ms" in str(error)
    assert world.pool.queued() == 0


def test_a_cancelled_send_gives_its_place_back_and_sends_nothing() -> None:
    world = small(max_block_ms=60_000)
    producer = ours(world)

    async def main() -> None:
        waiting = asyncio.ensure_future(producer.send("test", bytes(901), partition=0))
        await asyncio.sleep(0.01)
        assert world.pool.queued() == 1
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert world.pool.queued() == 0
        world.cluster.brokers[0].release()
        world.cluster.brokers[0].held.discard(PRODUCE)
        await producer.flush()

    drive(world, main)
    assert [len(value or b"") for value in world.values()] == [900]
    assert world.pool.available() == 2000


def test_random_cancellations_lose_nothing_and_double_nothing() -> None:
    """Each record is in the log once if its send returned, and not at all if it was cancelled; no memory is missing."""
    world = World(batch_size=1000, buffer_memory=4000, max_block_ms=60_000)
    producer = ours(world)
    chance = random.Random(7)
    count = 3000
    taken: set[int] = set()

    async def send(number: int) -> None:
        await producer.send("test", b"%06d" % number + bytes(chance.randrange(400)), partition=number % 2)
        taken.add(number)

    async def main() -> None:
        tasks: list[asyncio.Task[None]] = []
        for number in range(count):
            tasks.append(asyncio.ensure_future(send(number)))
            if chance.random() < 0.3:
                await asyncio.sleep(0)
            if chance.random() < 0.5:
                chance.choice(tasks[-20:]).cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await producer.flush()

    drive(world, main, limit=200_000)
    written = [int((value or b"")[:6]) for partition in (0, 1) for value in world.values("test", partition)]
    assert sorted(written) == sorted(taken)
    assert 0 < len(taken) < count
    assert (world.pool.available(), world.pool.queued()) == (4000, 0)


def test_sends_that_need_no_wait_let_other_tasks_run() -> None:
    def serialize(value: bytes) -> bytes:
        world.advance(0.25)  # what a send takes here
        return value

    world = World(value_serializer=serialize)
    producer = ours(world)
    ran: list[float] = []

    async def other() -> None:
        while True:
            ran.append(world.now)
            await asyncio.sleep(0)

    async def main() -> None:
        task = asyncio.ensure_future(other())
        await asyncio.sleep(0)
        for _ in range(10 * SENDS_BETWEEN_LOOKS):
            await producer.send("test", b"a")
        task.cancel()

    drive(world, main)
    assert max(later - earlier for earlier, later in itertools.pairwise(ran)) <= 5


def test_what_a_broker_refuses_arrives_in_the_future() -> None:
    world = World(known=False)
    world.cluster.topics["secret"] = Topic(error=29)
    sent = drive(world, lambda: ours(world).send("secret", b"a"))
    assert isinstance(sent.exception(0), TopicAuthorizationError)


def test_what_the_caller_got_wrong_is_raised() -> None:
    world = World()
    producer = ours(world)
    with pytest.raises(SerializationError):
        drive(world, lambda: producer.send("test", 5))
    with pytest.raises(IllegalArgumentError):
        drive(world, lambda: producer.send("test", b"a", partition=-7))
    with pytest.raises(IllegalArgumentError, match="no further value"):
        drive(world, lambda: producer.send(ProducerRecord("test", b"a"), b"b"))
    with pytest.raises(TypeError, match="topic must be a str"):
        drive(world, lambda: producer.send(5, b"a"))  # type: ignore[arg-type]


def test_interceptors_see_each_record_once() -> None:
    watching = Watching(lambda record: replace(record, value=b"changed"))
    world = World(interceptor_classes=[watching])
    drive(world, lambda: ours(world).send_and_wait("test", b"a", partition=0))
    assert world.values() == [b"changed"]
    assert [error for _metadata, error in watching.acknowledged] == [None]


# Callbacks


def test_callbacks_run_on_the_loop_in_order() -> None:
    world = World()
    producer = ours(world)
    told: list[tuple[int, int]] = []

    async def main() -> None:
        thread = threading.get_ident()

        def on_delivery(report: DeliveryReport) -> None:
            assert report.error is None and asyncio.get_running_loop() is not None
            told.append((threading.get_ident() - thread, report.metadata.offset))

        for _ in range(20):
            await producer.send("test", b"a", partition=0, on_delivery=on_delivery)
        await producer.flush()
        await asyncio.sleep(0)

    drive(world, main)
    assert told == [(0, offset) for offset in range(20)]


def test_a_callback_hears_of_a_record_that_was_refused() -> None:
    world = small()
    told: list[BaseException | None] = []

    async def main() -> None:
        await ours(world).send("test", bytes(900), partition=0, on_delivery=lambda report: told.append(report.error))
        await asyncio.sleep(0)

    drive(world, main)
    assert [type(error) for error in told] == [BufferExhaustedError]


@pytest.mark.parametrize("callback", [5, asyncio.sleep])
def test_a_callback_that_cannot_be_called(callback: Any) -> None:
    world = World()
    with pytest.raises(TypeError, match="plain function"):
        drive(world, lambda: ours(world).send("test", b"a", on_delivery=callback))
    assert not world.accumulator.has_incomplete()


# Tables, metadata, flush, close


def test_partitions_for() -> None:
    world = World(known=False)
    assert [one.partition for one in drive(world, lambda: ours(world).partitions_for("test"))] == [0, 1]


def test_partitions_for_a_topic_that_does_not_come() -> None:
    world = World(known=False)
    world.cluster.brokers[0].held.add(METADATA)
    with pytest.raises(KafkaTimeoutError, match="after 1000 ms"):
        drive(world, lambda: ours(world).partitions_for("test"))


def test_partitions_for_waits_no_longer_than_it_is_told() -> None:
    world = World(known=False)
    world.cluster.brokers[0].held.add(METADATA)
    with pytest.raises(KafkaTimeoutError, match=r"after 25\d ms"):
        drive(world, lambda: ours(world).partitions_for("test", timeout=0.25))


def test_flush_waits_for_the_outcomes() -> None:
    world = World(linger_ms=4000)
    producer = ours(world)

    async def main() -> RecordFuture:
        sent = await producer.send("test", b"a")
        await producer.flush()
        return sent

    assert drive(world, main).done()


def test_flush_in_vain() -> None:
    world = small()
    producer = ours(world)
    with pytest.raises(KafkaTimeoutError, match=r"flush: 2 record\(s\) have no outcome after 0.5 s"):
        drive(world, lambda: producer.flush(0.5))
    with pytest.raises(IllegalArgumentError):
        drive(world, lambda: producer.flush(-1))


def test_purge_waits_for_the_outcomes() -> None:
    world = World(linger_ms=5000)
    producer = ours(world)

    async def main() -> BaseException | None:
        sent = await producer.send("test", b"a")
        await producer.purge()
        return sent.exception(0)

    assert isinstance(drive(world, main), PurgedError)


def test_a_cancelled_flush_is_over() -> None:
    world = small()
    producer = ours(world)

    async def main() -> None:
        waiting = asyncio.ensure_future(producer.flush())
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    drive(world, main)
    assert not world.accumulator.flushing()


def test_async_with_closes_and_delivers() -> None:
    world = World(linger_ms=4000)
    PumpedThread(world)

    async def main() -> RecordFuture:
        async with ours(world) as producer:
            return await producer.send("test", b"a")

    sent = asyncio.run(main())
    assert sent.result(0).offset >= 0
    with pytest.raises(ProducerClosedError):
        asyncio.run(ours(world).send("test", b"a"))
    with pytest.raises(ProducerClosedError):
        asyncio.run(ours(world).partitions_for("test"))


def test_a_closed_producer_ends_a_send_that_waits() -> None:
    world = small(max_block_ms=60_000)
    producer = ours(world)

    async def main() -> None:
        waiting = asyncio.ensure_future(producer.send("test", bytes(900), partition=0))
        await asyncio.sleep(0.01)
        world.producer._set_state(1)
        world.accumulator.close()
        await waiting

    with pytest.raises(ProducerClosedError):
        drive(world, main)


def test_what_it_shows() -> None:
    world = World(client_id="me")
    producer = ours(world)
    assert producer.client_id == "me" and producer.config["client.id"] == "me"
    assert producer.metrics().value("record-send-total", group="producer-metrics") == 0
    assert repr(producer).startswith("<AsyncKafkaProducer of <KafkaProducer me of ")
