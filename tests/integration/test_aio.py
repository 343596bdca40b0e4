"""The asynchronous producer on asyncio's loop and on uvloop: real brokers, cancellations, a loop that is not held."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import uvloop
from fastapi import FastAPI, Request
from httpx import ASGITransport, AsyncClient

from forebay import KafkaProducer
from forebay.errors import BufferExhaustedError, KafkaTimeoutError
from forebay.model import RecordMetadata
from forebay.producer.aio import AsyncKafkaProducer
from forebay.testing import EmbeddedBroker
from tests.support.examples import cases
from tests.support.fixtures import Broker, TopicFactory
from tests.support.pace import until, within, within_ms
from tests.support.readback import read_all
from tools.kafka import RealKafka

BLOCK_MS = within_ms(100)
PAUSE_S = within(0.005)
"""Of a loop that nobody holds; one that a waiting call holds pauses for all of its time, ``BLOCK_MS``."""
Runner = Callable[[Coroutine[Any, Any, Any]], Any]


def on_uvloop(main: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


BOTH_LOOPS = pytest.mark.parametrize("run", [asyncio.run, on_uvloop], ids=["asyncio", "uvloop"])


class Pauses:
    """The longest time between two turns of the loop that it runs on; the machine's own pauses are in it, too."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def __aenter__(self) -> Pauses:
        self._task = asyncio.ensure_future(self._tick())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._task.cancel()

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(0.001)
            now = loop.time()
            self.longest, last = max(self.longest, now - last - 0.001), now


async def best_pause(work: Callable[[], Coroutine[Any, Any, None]], *, wanted_s: float, tries: int = 10) -> float:
    """The longest pause in the best of several runs: a busy machine pauses a loop that nobody holds."""
    shortest = float("inf")
    for _ in range(tries):
        gc.collect()
        async with Pauses() as pauses:
            await work()
        shortest = min(shortest, pauses.longest)
        if shortest <= wanted_s:
            break
    return shortest


@BOTH_LOOPS
def test_records_and_tables_arrive_once_and_in_order(run: Runner, any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 3)
    count = 3000
    told: list[BaseException | None] = []

    async def main() -> list[RecordMetadata]:
        async with AsyncKafkaProducer(bootstrap_servers=any_broker.bootstrap_servers, batch_size=2000) as producer:
            sent = [
                await producer.send(
                    name, b"%d" % number, partition=number % 3, on_delivery=lambda report: told.append(report.error)
                )
                for number in range(count)
            ]
            delivery = await producer.send_batch(name, {"value": [b"row %d" % row for row in range(500)]}, partition=0)
            await producer.flush()
            found = await delivery
            assert sum(run.records for runs in found.values() for run in runs) == 500
            return await asyncio.gather(*sent)

    metadata = run(main())
    assert told == [None] * count
    records = read_all(any_broker.bootstrap_servers, name)
    by_place = {(record.partition, record.offset): record.value for record in records}
    assert [by_place[one.partition, one.offset] for one in metadata] == [b"%d" % number for number in range(count)]
    for partition in range(3):
        own = [record.value for record in records if record.partition == partition]
        rows = [b"row %d" % row for row in range(500)] if partition == 0 else []
        assert own == [b"%d" % number for number in range(partition, count, 3)] + rows


@BOTH_LOOPS
def test_a_transaction(run: Runner, kafka: RealKafka, topic: TopicFactory) -> None:
    name = topic(kafka)

    async def main() -> None:
        options = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name}
        async with AsyncKafkaProducer(options) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send(name, b"committed")
            with contextlib.suppress(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send_and_wait(name, b"aborted")
                    raise ZeroDivisionError

    run(main())
    assert [record.value for record in read_all(kafka.bootstrap_servers, name)] == [b"committed"]


@pytest.mark.sized
def test_a_hundred_thousand_random_cancellations(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """Nothing is lost, doubled or leaked: what send() gave a future for is written once, what was cancelled is not."""
    name = topic(embedded, 4)
    chance = random.Random(20)
    wanted = cases(100_000)
    outcomes: Counter[str] = Counter()
    acknowledged: set[tuple[int, int]] = set()

    async def one(producer: AsyncKafkaProducer, number: int) -> None:
        sent = await producer.send(name, b"%07d" % number + bytes(chance.randrange(60)))
        outcomes["taken"] += 1
        found = await sent
        acknowledged.add((found.partition, found.offset))

    async def main() -> None:
        options = {"bootstrap.servers": embedded.bootstrap_servers, "batch.size": 1000, "buffer.memory": 16_000}
        async with AsyncKafkaProducer(options) as producer:
            await producer.partitions_for(name)
            number = 0
            while outcomes["cancelled"] < wanted:
                tasks = [asyncio.ensure_future(one(producer, number + more)) for more in range(400)]
                number += len(tasks)
                for task in tasks:
                    # Before it ran, while it waits for memory, or while it waits for the acknowledgement.
                    if chance.random() < 0.05:
                        await asyncio.sleep(0)
                    if chance.random() < 0.9:
                        task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
                for error in ended:
                    assert error is None or isinstance(error, asyncio.CancelledError), error
                    outcomes["cancelled"] += error is not None
            await producer.flush()
            pool = producer._producer._parts.accumulator.pool
            # A flush ends when the outcomes are there, and the sender gives the memory back after that.
            until(lambda: (pool.available(), pool.queued()) == (16_000, 0), "all memory is back")
            sent = producer.metrics().value("record-send-total", group="producer-metrics")
            assert sent == outcomes["taken"]

    asyncio.run(main())
    assert outcomes["cancelled"] >= wanted
    assert 0 < len(acknowledged) <= outcomes["taken"]


@BOTH_LOOPS
def test_the_loop_is_not_held_while_a_send_waits(run: Runner, embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """Buffer full, topic unknown, broker frozen: other tasks of the loop go on."""
    name = topic(embedded)

    async def main() -> None:
        options = {"bootstrap.servers": embedded.bootstrap_servers, "buffer.memory": 100_000, "max.block.ms": BLOCK_MS}
        producer = AsyncKafkaProducer(options)
        await producer.send_and_wait(name, b"first")

        async def unknown_topic() -> None:
            embedded.set_topic_error("away", 3)
            sent = await producer.send("away", b"a")
            assert isinstance(sent.exception(0), KafkaTimeoutError)

        async def full_buffer() -> None:
            failed = 0
            while not failed:
                sent = await producer.send(name, bytes(5000))
                failed += sent.done() and isinstance(sent.exception(0), BufferExhaustedError)

        async def in_vain() -> None:
            with contextlib.suppress(KafkaTimeoutError):
                await producer.flush(BLOCK_MS / 1000)

        assert await best_pause(unknown_topic, wanted_s=PAUSE_S) <= PAUSE_S
        embedded.set_rtt(600_000)
        assert await best_pause(full_buffer, wanted_s=PAUSE_S) <= PAUSE_S
        assert await best_pause(in_vain, wanted_s=PAUSE_S) <= PAUSE_S
        with contextlib.suppress(KafkaTimeoutError):
            await producer.close(0)

    run(main())


def test_futures_of_a_threads_producer_are_awaited(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)

    async def main(producer: KafkaProducer) -> int:
        sent = producer.send(name, b"a")
        wrapped = asyncio.wrap_future(producer.send(name, b"b").as_concurrent())
        return (await sent).offset + (await wrapped).offset

    with KafkaProducer(bootstrap_servers=embedded.bootstrap_servers) as producer:
        assert asyncio.run(main(producer)) == 1


def test_a_web_service(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """The example of docs/asyncio.md: one producer for the life of a FastAPI application."""

    name = topic(embedded)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncKafkaProducer(bootstrap_servers=embedded.bootstrap_servers) as producer:
            app.state.producer = producer
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/events")
    async def event(request: Request) -> dict[str, int]:
        found = await request.app.state.producer.send_and_wait(name, await request.body())
        return {"offset": found.offset}

    async def main() -> list[int]:
        transport = ASGITransport(app=app)
        async with app.router.lifespan_context(app), AsyncClient(transport=transport, base_url="http://app") as client:
            answers = await asyncio.gather(*[client.post("/events", content=b"%d" % n) for n in range(50)])
            return sorted(answer.json()["offset"] for answer in answers)

    assert asyncio.run(main()) == list(range(50))
    assert sorted(int(record.value or b"") for record in read_all(embedded.bootstrap_servers, name)) == list(range(50))
