"""Consume, transform, produce: the consumers that people have, and forebay's transactions, on real brokers.

What their consumers give goes into ``send_offsets_to_transaction`` as it is.  Who was expelled from the group, or has a
successor as a producer, commits nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import confluent_kafka
import kafka as kafka_python
import pytest

from forebay import KafkaProducer, errors
from forebay.errors import CommitFailedError, KafkaError, ProducerFencedError
from forebay.model import TopicPartition
from tests.integration.transactions import committed_offset, committed_values
from tests.integration.workload import WAIT_S
from tests.support.fixtures import TopicFactory
from tests.support.pace import until, within_ms
from tools.kafka import RealKafka

SESSION_MS = within_ms(6000)
_numbers = itertools.count()


class Confluent:
    """confluent-kafka's Consumer in a group."""

    def __init__(self, kafka: RealKafka, topic: str, group: str, **options: Any) -> None:
        settings = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
        self.consumer = confluent_kafka.Consumer({**settings, **options})
        self.consumer.subscribe([topic])

    def read(self) -> list[bytes]:
        return [message.value() or b"" for message in self.consumer.consume(10, 0.2) if message.error() is None]

    def offsets(self) -> object:
        return self.consumer.position(self.consumer.assignment())

    def group(self) -> object:
        return self.consumer.consumer_group_metadata()

    def close(self) -> None:
        self.consumer.close()


class ConfluentOfTheNewProtocol(Confluent):
    """The same by KIP-848, where generations are epochs of a member."""

    def __init__(self, kafka: RealKafka, topic: str, group: str) -> None:
        super().__init__(kafka, topic, group, **{"group.protocol": "consumer"})


class KafkaPython:
    """kafka-python's KafkaConsumer in a group."""

    def __init__(self, kafka: RealKafka, topic: str, group: str) -> None:
        self.consumer = kafka_python.KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            # A member that ends is expelled after that, also if its last words are lost.
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=500,
        )
        # A member that leads its group without knowing the topic's partitions gives none to anybody, for good.
        until(lambda: self.consumer.partitions_for_topic(topic), "kafka-python knows the topic")
        self.consumer.subscribe([topic])

    def read(self) -> list[bytes]:
        found = self.consumer.poll(timeout_ms=200, max_records=10)
        return [record.value for records in found.values() for record in records]

    def offsets(self) -> object:
        return {
            where: kafka_python.OffsetAndMetadata(self.consumer.position(where), "", -1)
            for where in self.consumer.assignment()
        }

    def group(self) -> object:
        return self.consumer.group_metadata()

    def close(self) -> None:
        self.consumer.close()


class AioKafka:
    """aiokafka's AIOKafkaConsumer in a group; its loop runs while it is asked for something, and else stands still."""

    def __init__(self, kafka: RealKafka, topic: str, group: str) -> None:
        self.loop = asyncio.new_event_loop()

        async def start() -> aiokafka.AIOKafkaConsumer:
            consumer = aiokafka.AIOKafkaConsumer(
                topic,
                bootstrap_servers=kafka.bootstrap_servers,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=500,
            )
            await consumer.start()
            return consumer

        self.consumer = self.loop.run_until_complete(start())

    def read(self) -> list[bytes]:
        found = self.loop.run_until_complete(self.consumer.getmany(timeout_ms=200, max_records=10))
        return [record.value for records in found.values() for record in records]

    def offsets(self) -> object:
        async def positions() -> dict[Any, int]:
            return {where: await self.consumer.position(where) for where in self.consumer.assignment()}

        return self.loop.run_until_complete(positions())

    def group(self) -> object:
        return self.consumer

    def close(self) -> None:
        self.loop.run_until_complete(self.consumer.stop())
        self.loop.close()


READERS = {kind.__name__: kind for kind in (Confluent, ConfluentOfTheNewProtocol, KafkaPython, AioKafka)}
Start = Callable[..., Any]


@pytest.fixture
def start() -> Iterator[Start]:
    """``start(kind, kafka, topic, group)``: a consumer that is closed at the end of the test."""
    readers: list[Any] = []

    def begin(kind: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        readers.append(kind(*arguments, **options))
        return readers[-1]

    yield begin
    for reader in readers:
        reader.close()


@pytest.fixture
def initialized(request: pytest.FixtureRequest) -> Iterator[Callable[..., KafkaProducer]]:
    """``initialized(kafka)``: a transactional producer, with an id of its own unless it is given one."""
    producers: list[KafkaProducer] = []

    def begin(broker: RealKafka, name: str = "") -> KafkaProducer:
        name = name or f"other-{os.getpid()}-{next(_numbers)}"
        # The longest that a broker allows: a transaction stays open while a group gets new members.
        options: dict[str, Any] = {"transactional_id": name, "transaction_timeout_ms": 900_000, "linger_ms": 0}
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **options)
        producers.append(producer)
        producer.init_transactions(WAIT_S)
        return producer

    yield begin
    for producer in producers:
        producer.close(WAIT_S)


def filled(kafka: RealKafka, topic: TopicFactory) -> tuple[str, str]:
    """A topic of 2 partitions with 10 records in each, and one for what becomes of them."""
    source, target = topic(kafka, 2), topic(kafka, 1)
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for number in range(20):
            producer.send(source, b"v%d" % number, partition=number % 2)
    return source, target


def read_some(*readers: Any) -> list[bytes]:
    """The next records of the first reader; the others take part in the group meanwhile."""
    found: list[bytes] = []

    def has_read() -> bool:
        found.extend(readers[0].read())
        for other in readers[1:]:
            other.read()
        return bool(found)

    until(has_read, "something is read")
    return found


def transform(ours: KafkaProducer, reader: Any, target: str, *, until: int) -> list[bytes]:
    """Transactions until so many records were transformed; they are given back."""
    done: list[bytes] = []
    while len(done) < until:
        values = read_some(reader)
        with ours.transaction():
            for value in values:
                ours.send(target, value.upper())
            ours.send_offsets_to_transaction(reader.offsets(), reader.group())
        done += values
    return done


def committed_offsets(kafka: RealKafka, group: str, topic: str) -> list[int]:
    return [committed_offset(kafka, group, TopicPartition(topic, partition)) for partition in (0, 1)]


@pytest.mark.parametrize("kind", READERS)
def test_what_was_read_is_committed_with_what_was_written(
    kafka: RealKafka, topic: TopicFactory, start: Start, initialized: Any, kind: str
) -> None:
    source, target = filled(kafka, topic)
    done = transform(initialized(kafka), start(READERS[kind], kafka, source, source), target, until=20)
    assert sorted(done) == sorted(b"v%d" % number for number in range(20))
    assert set(committed_values(kafka, target)[0]) == {value.upper() for value in done}
    assert len(committed_values(kafka, target)[0]) == 20
    assert committed_offsets(kafka, source, source) == [10, 10]


@pytest.mark.parametrize("kind", ["Confluent", "KafkaPython", "AioKafka"])
def test_the_first_generation_of_transactions(
    legacy_kafka: RealKafka, topic: TopicFactory, start: Start, initialized: Any, kind: str
) -> None:
    source, target = filled(legacy_kafka, topic)
    transform(initialized(legacy_kafka), start(READERS[kind], legacy_kafka, source, source), target, until=20)
    assert len(committed_values(legacy_kafka, target)[0]) == 20
    assert committed_offsets(legacy_kafka, source, source) == [10, 10]


@pytest.mark.parametrize("kind", READERS)
def test_a_member_that_was_expelled_commits_nothing(
    kafka: RealKafka, topic: TopicFactory, start: Start, initialized: Any, kind: str
) -> None:
    """Another member has its partitions and committed them; aiokafka's is expelled while its loop rests."""
    source, target = filled(kafka, topic)
    zombie, ours = start(READERS[kind], kafka, source, source), initialized(kafka)
    values = read_some(zombie)
    ours.begin_transaction()
    for value in values:
        ours.send(target, b"twice " + value)
    offsets, group = zombie.offsets(), zombie.group()
    if kind != "AioKafka":
        zombie.close()
        zombie.close = lambda: None
    transform(initialized(kafka), start(READERS[kind], kafka, source, source), target, until=20)
    with pytest.raises(CommitFailedError, match="group metadata mismatch") as caught:
        ours.send_offsets_to_transaction(offsets, group)
    assert caught.value.txn_requires_abort and not caught.value.fatal
    with pytest.raises(CommitFailedError, match="error state"):
        ours.commit_transaction()
    ours.abort_transaction()
    assert len(committed_values(kafka, target)[0]) == 20
    assert not any(value.startswith(b"twice") for value in committed_values(kafka, target)[0] if value)
    assert committed_offsets(kafka, source, source) == [10, 10]


def test_metadata_of_an_older_generation(kafka: RealKafka, topic: TopicFactory, start: Start, initialized: Any) -> None:
    """The member is still there, but others have come since: its partitions may be theirs."""
    source, target = filled(kafka, topic)
    reader, ours = start(Confluent, kafka, source, source), initialized(kafka)
    read_some(reader)
    offsets, older = reader.offsets(), reader.group()
    other = start(Confluent, kafka, source, source)

    def rebalanced() -> bool:
        reader.read()
        other.read()
        return reader.group() != older and bool(reader.consumer.assignment() and other.consumer.assignment())

    until(rebalanced, "a rebalance")
    ours.begin_transaction()
    ours.send(target, b"late")
    with pytest.raises(CommitFailedError):
        ours.send_offsets_to_transaction(offsets, older)
    ours.abort_transaction()
    with ours.transaction():
        ours.send_offsets_to_transaction(offsets, reader.group())
    assert committed_values(kafka, target) == {}
    assert max(committed_offsets(kafka, source, source)) > 0


def test_a_static_member_whose_place_was_taken(
    kafka: RealKafka, topic: TopicFactory, start: Start, initialized: Any
) -> None:
    source, target = filled(kafka, topic)
    static = {"group.instance.id": "the-only-one"}
    reader, ours = start(Confluent, kafka, source, source, **static), initialized(kafka)
    read_some(reader)
    offsets, group = reader.offsets(), reader.group()
    transform(initialized(kafka), start(Confluent, kafka, source, source, **static), target, until=20)
    ours.begin_transaction()
    ours.send(target, b"late")
    kind = errors.for_code(82)
    assert kind is not None
    with pytest.raises(kind) as caught:
        ours.send_offsets_to_transaction(offsets, group)
    assert isinstance(caught.value, KafkaError) and caught.value.txn_requires_abort
    ours.abort_transaction()
    assert committed_offsets(kafka, source, source) == [10, 10]


@pytest.mark.parametrize("kind", READERS)
def test_a_producer_with_a_successor_commits_nothing(
    kafka: RealKafka, topic: TopicFactory, start: Start, initialized: Any, kind: str
) -> None:
    """Its consumer is a member in good standing; its epoch is an older one."""
    source, target = filled(kafka, topic)
    reader, ours = start(READERS[kind], kafka, source, source), initialized(kafka)
    values = read_some(reader)
    ours.begin_transaction()
    ours.send(target, values[0])
    ours.flush()
    successor = initialized(kafka, ours.transactional_id)
    with pytest.raises(ProducerFencedError, match="newer producer") as caught:
        ours.send_offsets_to_transaction(reader.offsets(), reader.group())
    assert caught.value.fatal and not caught.value.txn_requires_abort
    with pytest.raises(ProducerFencedError):
        ours.abort_transaction()
    with successor.transaction():
        successor.send(target, b"after")
        successor.send_offsets_to_transaction(reader.offsets(), reader.group())
    assert committed_values(kafka, target)[0] == [b"after"]
    assert sum(max(offset, 0) for offset in committed_offsets(kafka, source, source)) == len(values)
