"""A topic whose name Kafka forbids fails what asked for it, by every call, and holds up no other topic."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from forebay.compat.aiokafka.producer import _RaisingProducer
from forebay.compat.kafka.producer import _Native
from forebay.errors import InvalidTopicError
from forebay.model import ProducerRecord
from forebay.producer.aio import AsyncKafkaProducer
from forebay.testing.mock_producer import MockProducer
from tests.fakes.broker import METADATA
from tests.fakes.loop import drive
from tests.fakes.names import FORBIDDEN_TOPICS
from tests.fakes.waiting import Watching, meanwhile
from tests.fakes.world import HandDriven, Told, World
from tests.unit.compat.aiokafka.test_send import used as aiokafka
from tests.unit.compat.kafka.test_path import ours as kafka_python

IDS = [ascii(name)[:20] for name in FORBIDDEN_TOPICS]


class Raising(_RaisingProducer, HandDriven):
    """The native producer of a started AIOKafkaProducer, driven by the test."""


class Native(_Native, HandDriven):
    """That of kafka-python's."""


def raised_by(call: Callable[[], object]) -> BaseException:
    """What a call raises."""
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


def asked_for(world: World) -> set[str]:
    """The topics that any broker was asked for."""
    return {
        topic.name or ""
        for broker in world.cluster.brokers.values()
        for request in broker.of(METADATA)
        for topic in request.body.topics or ()
    }


def by_a_column(world: World, name: str) -> BaseException | None:
    """Arrow has no text with lone surrogates, so there the bytes are given, which are no UTF-8."""
    column = pa.array([name.encode(errors="surrogatepass")], pa.binary())
    return raised_by(lambda: world.producer.send_batch(None, {"value": [b"v"], "topic": column}, topic_column="topic"))


def by_asyncio(world: World, name: str) -> BaseException | None:
    producer = AsyncKafkaProducer._around(world.producer)

    async def main() -> BaseException | None:
        return (await producer.send(name, b"v")).exception(0)

    return drive(world, main)


def by_asyncios_partitions(world: World, name: str) -> BaseException:
    producer = AsyncKafkaProducer._around(world.producer)
    return raised_by(lambda: drive(world, lambda: producer.partitions_for(name)))


CALLS: dict[str, Callable[[World, str], BaseException | None]] = {
    "send": lambda world, name: world.producer.send(name, b"v").exception(0),
    "send a record": lambda world, name: world.producer.send(ProducerRecord(name, b"v")).exception(0),
    "send to a partition": lambda world, name: world.producer.send(name, b"v", partition=7).exception(0),
    "send_nowait": lambda world, name: world.producer.send_nowait(name, b"v").exception(0),
    "partitions_for": lambda world, name: raised_by(lambda: world.producer.partitions_for(name)),
    "send_batch": lambda world, name: raised_by(lambda: world.producer.send_batch(name, [b"v"])),
    "send_batch by a column": by_a_column,
    "asyncio": by_asyncio,
    "asyncio's partitions_for": by_asyncios_partitions,
}


@pytest.mark.parametrize("name", FORBIDDEN_TOPICS, ids=IDS)
@pytest.mark.parametrize("call", CALLS)
def test_a_forbidden_name_fails_its_call_and_no_other(call: str, name: str) -> None:
    """No time passes, nobody is asked for it, and a topic that was unknown is there in the turns that it takes."""
    world = World(max_block_ms=1000)
    world.cluster.create("good", 1)
    begun = world.now
    error = CALLS[call](world, name)
    assert isinstance(error, InvalidTopicError), repr(error)
    assert "No topic can be named '" in str(error) and len(str(error)) < 400
    if call != "asyncio" and call != "asyncio's partitions_for":
        assert world.now == begun
    sent = meanwhile(world, lambda: world.producer.send("good", b"v"))
    world.settle()
    assert sent.result(0).topic == "good" and world.now - begun < 100
    assert name not in asked_for(world) and "good" in asked_for(world)


def test_the_callback_and_the_interceptor_hear_of_it() -> None:
    watching, told = Watching(), Told()
    world = World(interceptor_classes=[watching])
    for number, name in enumerate(FORBIDDEN_TOPICS, 1):
        future = world.producer.send(name, b"v", on_delivery=told)
        metadata, error = told[-1]
        assert (metadata.topic, metadata.partition) == (name, -1) and isinstance(error, InvalidTopicError)
        assert repr(future.exception(0)) == repr(error) and watching.acknowledged == told and len(told) == number
    assert world.metric("record-error-total") == len(FORBIDDEN_TOPICS)


def test_forbidden_names_in_the_midst_of_good_ones() -> None:
    """Also while a request is under way, and by its answer."""
    world = World(topics={f"good{number}": 1 for number in range(len(FORBIDDEN_TOPICS))}, known=False)
    refused = [world.producer.send(name, b"v") for name in FORBIDDEN_TOPICS]
    for number, name in enumerate(FORBIDDEN_TOPICS):
        refused.append(world.producer.send(name, b"v"))
        sent = meanwhile(world, partial(world.producer.send, f"good{number}", b"v"))
        refused.append(world.producer.send(name, b"v"))
        world.settle()
        assert sent.result(0).topic == f"good{number}"
    assert all(isinstance(future.exception(0), InvalidTopicError) for future in refused)


@pytest.mark.parametrize("name", FORBIDDEN_TOPICS, ids=IDS)
def test_drop_in_classes_and_the_mock(name: str) -> None:
    """Each in its own words: kafka-python's and aiokafka's error of this code, and the same future of the mock."""
    world = World(kind=Native, max_block_ms=1000)
    producer = kafka_python(world)
    assert getattr(raised_by(lambda: producer.send(name, b"v").get(0)), "errno", None) == InvalidTopicError.code
    assert getattr(raised_by(lambda: producer.partitions_for(name)), "errno", None) == InvalidTopicError.code
    assert name not in asked_for(world)
    other = World(kind=Raising, max_block_ms=1000)
    for use in (lambda made: made.send(name, b"v"), lambda made: made.partitions_for(name)):
        assert "No topic can be named" in str(raised_by(partial(aiokafka, other, use)))
    assert name not in asked_for(other)
    mock = MockProducer()
    assert isinstance(mock.send(name, b"v").exception(0), InvalidTopicError)
    for call in (lambda: mock.partitions_for(name), lambda: mock.send_batch(name, [b"v"])):
        assert isinstance(raised_by(call), InvalidTopicError)
    assert mock.history() == []
