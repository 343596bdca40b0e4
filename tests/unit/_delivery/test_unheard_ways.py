"""Who hears of a failure: each way to ask a future, and each callback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from forebay._delivery import unheard
from forebay._delivery.unheard import PATIENCE_MS
from forebay.compat.aiokafka import AIOKafkaProducer
from forebay.compat.confluent_kafka import Producer
from forebay.compat.kafka import KafkaProducer
from forebay.errors import KafkaError
from forebay.producer.aio import AsyncKafkaProducer
from tests.fakes.loop import drive
from tests.fakes.world import World
from tests.unit._delivery.failures import LARGE, Lines, fail, said, world_of


def ask(question: Callable[[Any], object]) -> Callable[[World], None]:
    def use(world: World) -> None:
        fail(world)
        future = world.producer.send("t", b"v")
        world.settle()
        question(future)

    return use


def swallow(call: Callable[[], object]) -> None:
    with pytest.raises(KafkaError):
        call()


def given_callback(world: World) -> None:
    fail(world)
    world.producer.send("t", b"v", on_delivery=lambda report: None)


def given_callback_too_large(world: World) -> None:
    world.producer.send("t", LARGE, on_delivery=lambda report: None)


def done_callback_before(world: World) -> None:
    fail(world)
    world.producer.send("t", b"v").add_done_callback(lambda future: None)


def awaited(world: World) -> None:
    async def main() -> None:
        fail(world)
        future = await AsyncKafkaProducer._around(world.producer).send("t", b"v")
        with pytest.raises(KafkaError):
            await future

    drive(world, main)


def callback_of_a_loop(world: World) -> None:
    async def main() -> None:
        fail(world)
        producer = AsyncKafkaProducer._around(world.producer)
        await producer.send("t", b"v", on_delivery=lambda report: None)
        await asyncio.sleep(0.1)

    drive(world, main)


def ask_rows(question: Callable[[Any], object]) -> Callable[[World], None]:
    def use(world: World) -> None:
        fail(world)
        delivery = world.producer.send_batch("t", [b"a", b"b"])
        world.settle()
        question(delivery)

    return use


def rows_callback_before(world: World) -> None:
    fail(world)
    world.producer.send_batch("t", [b"a", b"b"]).add_done_callback(lambda delivery: None)


def kafka(question: Callable[[Any], object], *, before: bool = False) -> Callable[[World], None]:
    def use(world: World) -> None:
        fail(world)
        future = KafkaProducer._around(world.producer).send("t", b"v")
        if not before:
            world.settle()
        question(future)

    return use


def aiokafka(
    question: Callable[[Any], object], *, before: bool = False, batch: bool = False
) -> Callable[[World], None]:
    def use(world: World) -> None:
        async def main() -> None:
            producer = AIOKafkaProducer._around(world.producer)
            producer._closed = True
            fail(world)
            future: Any
            if batch:
                several = producer.create_batch()
                for _ in range(3):
                    several.append(timestamp=None, key=None, value=b"v")
                future = await producer.send_batch(several, "t", partition=0)
            else:
                future = await producer.send("t", b"v")
            if not before:
                await asyncio.sleep(0.1)
            question(future)
            await asyncio.sleep(0.1)

        drive(world, main)

    return use


def confluent(world: World) -> None:
    fail(world)
    producer = Producer._around(world.producer)
    producer.produce("t", b"v", on_delivery=lambda error, message: None)
    world.settle()
    producer.poll(0)


def ignored(*_given: Any) -> None: ...


WAYS: dict[str, Callable[[World], None]] = {
    "on_delivery": given_callback,
    "on_delivery, too large": given_callback_too_large,
    "add_done_callback before": done_callback_before,
    "add_done_callback after": ask(lambda future: future.add_done_callback(ignored)),
    "result": ask(lambda future: swallow(lambda: future.result(0))),
    "get": ask(lambda future: swallow(lambda: future.get(0))),
    "exception": ask(lambda future: future.exception(0)),
    "as_concurrent": ask(lambda future: future.as_concurrent()),
    "await": awaited,
    "asyncio, on_delivery": callback_of_a_loop,
    "rows, result": ask_rows(lambda delivery: swallow(lambda: delivery.result(0))),
    "rows, exception": ask_rows(lambda delivery: delivery.exception(0)),
    "rows, failed": ask_rows(lambda delivery: delivery.failed),
    "rows, failures": ask_rows(lambda delivery: delivery.failures),
    "rows, first_error": ask_rows(lambda delivery: delivery.first_error),
    "rows, add_done_callback after": ask_rows(lambda delivery: delivery.add_done_callback(ignored)),
    "rows, add_done_callback before": rows_callback_before,
    "kafka-python, get": kafka(lambda future: swallow(lambda: future.native.result(0))),
    "kafka-python, exception": kafka(lambda future: future.exception),
    "kafka-python, failed": kafka(lambda future: future.failed()),
    "kafka-python, add_errback": kafka(lambda future: future.add_errback(ignored), before=True),
    "kafka-python, add_both": kafka(lambda future: future.add_both(ignored), before=True),
    "kafka-python, both in turn": kafka(
        lambda future: future.add_callback(ignored).add_errback(ignored).add_callback(print), before=True
    ),
    "kafka-python, add_errback after": kafka(lambda future: future.add_errback(ignored)),
    "aiokafka, exception": aiokafka(lambda future: future.exception()),
    "aiokafka, add_done_callback": aiokafka(lambda future: future.add_done_callback(ignored), before=True),
    "aiokafka, a batch": aiokafka(lambda future: future.exception(), batch=True),
    "confluent-kafka, on_delivery": confluent,
}


@pytest.mark.parametrize("name", WAYS)
def test_nothing_is_said_of_what_somebody_hears_of(name: str, lines: Lines) -> None:
    world = world_of()
    WAYS[name](world)
    said(world)
    world.let_pass(2 * PATIENCE_MS)
    unheard.say_left(over=True)
    assert lines() == []
