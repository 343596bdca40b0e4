"""Programs as users of aiokafka write them, with the import alone changed, on the embedded broker and a real Kafka."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiokafka import AIOKafkaConsumer
from aiokafka import AIOKafkaProducer as Original

from forebay.compat.aiokafka import AIOKafkaProducer, TopicPartition
from forebay.compat.aiokafka.errors import KafkaConnectionError, KafkaError, ProducerClosed, ProducerFenced
from forebay.compat.aiokafka.helpers import create_ssl_context
from forebay.testing import EmbeddedBroker
from tests.support.fixtures import Broker, ReadBackFactory, TopicFactory
from tests.support.pace import HANG_MS, HANG_S
from tests.support.secure import Secure
from tools.kafka.judge import dump_log
from tools.ports import free_ports


async def consumed(servers: str, topic: str, count: int, **options: Any) -> list[Any]:
    """The first messages of all partitions."""
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest", **options)
    await consumer.start()
    try:
        return [await asyncio.wait_for(consumer.getone(), HANG_S) for _ in range(count)]
    finally:
        await consumer.stop()


async def committed(consumer: AIOKafkaConsumer, where: Any) -> int:
    """A group's first offset: brokers confirm the end of a transaction before they write it into its partitions."""
    while (offset := await consumer.committed(where)) is None:
        await asyncio.sleep(0.05)
    return int(offset)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_start_one_message_and_stop(kafka: Broker, topic: TopicFactory, run: Any) -> None:
    name = topic(kafka)

    async def main() -> Any:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
        await producer.start()
        try:
            return await producer.send_and_wait(name, b"first")
        finally:
            await producer.stop()

    found = run(main())
    assert found.topic_partition == TopicPartition(name, 0)
    assert (found.offset, found.timestamp_type) == (0, 0) and found.timestamp > 1_600_000_000_000


def test_a_consumer_of_aiokafka_takes_the_place_that_a_record_went_to(kafka: Broker, topic: TopicFactory) -> None:
    name = topic(kafka, 3)

    async def main() -> list[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            found = await producer.send_and_wait(name, b"passed over", partition=2)
            await producer.send_and_wait(name, b"read", partition=2)
        consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap_servers)
        await consumer.start()
        try:
            consumer.assign([found.topic_partition])
            consumer.seek(found.topic_partition, found.offset + 1)
            return [(await asyncio.wait_for(consumer.getone(), HANG_S)).value]
        finally:
            await consumer.stop()

    assert asyncio.run(main()) == [b"read"]


def test_futures_are_gathered_on_the_embedded_broker() -> None:
    async def main(servers: str) -> None:
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            sent = [await producer.send("topic", b"%d" % number, key=b"k") for number in range(500)]
            found = await asyncio.gather(*sent)
            assert [each.offset for each in found] == list(range(500))
            partition = found[0].partition
            batch = producer.create_batch()
            for number in range(20):
                assert batch.append(key=None, value=b"%d" % number, timestamp=None) is not None
            assert (await (await producer.send_batch(batch, "topic", partition=partition))).offset == 500
            assert partition in await producer.partitions_for("topic")

    with EmbeddedBroker() as broker:
        asyncio.run(main(broker.bootstrap_servers))


def test_json_with_compression_and_serializers(kafka: Broker, topic: TopicFactory) -> None:
    """Objects become JSON, batches gzip; the original's consumer reads both."""
    name = topic(kafka)

    async def main() -> list[Any]:
        producer = AIOKafkaProducer(
            bootstrap_servers=kafka.bootstrap_servers,
            key_serializer=str.encode,
            value_serializer=lambda value: json.dumps(value).encode(),
            compression_type="gzip",
            linger_ms=20,
        )
        await producer.start()
        for number in range(3):
            await producer.send(name, {"number": number}, key="k", headers=[("kind", b"test")])
        await producer.stop()
        return await consumed(kafka.bootstrap_servers, name, 3, value_deserializer=json.loads)

    found = asyncio.run(main())
    assert [each.value["number"] for each in found] == [0, 1, 2]
    assert {(each.key, each.headers) for each in found} == {(b"k", (("kind", b"test"),))}


def test_a_partitioner_of_ones_own(kafka: Broker, topic: TopicFactory) -> None:
    name = topic(kafka, 5)

    def first_and_last(key: bytes | None, every: list[int], available: list[int]) -> int:
        return {b"first": every[0], b"last": every[-1]}.get(key or b"", random.choice(available))

    async def main() -> list[int]:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, partitioner=first_and_last)
        async with producer:
            found = [await producer.send_and_wait(name, b"v", key=key) for key in (b"first", b"last", b"other")]
        return [each.partition for each in found]

    first, last, other = asyncio.run(main())
    assert (first, last) == (0, 4) and other in range(5)


def test_keys_go_where_the_original_puts_them(kafka: Broker, topic: TopicFactory) -> None:
    name = topic(kafka, 12)

    async def placed(kind: Any) -> list[int]:
        producer = kind(bootstrap_servers=kafka.bootstrap_servers)
        await producer.start()
        sent = [await producer.send(name, b"v", key=b"key-%d" % number) for number in range(40)]
        await producer.stop()
        return [(await future).partition for future in sent]

    async def main() -> tuple[list[int], list[int]]:
        return await placed(AIOKafkaProducer), await placed(Original)

    ours, theirs = asyncio.run(main())
    assert ours == theirs and len(set(ours)) > 1


def test_batches_of_ones_own(kafka: Any, topic: TopicFactory) -> None:
    """Batches are filled up to their limit; each is one batch of the log, which Kafka's own tool tells."""
    name, count = topic(kafka, 3), 1000
    filled: list[int] = []

    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, compression_type="lz4")
        await producer.start()
        partitions = tuple(await producer.partitions_for(name))
        batch, sent = producer.create_batch(), []

        async def submit() -> None:
            filled.append(batch.record_count())
            sent.append(await producer.send_batch(batch, name, partition=random.choice(partitions)))

        for number in range(count):
            if batch.append(key=None, value=b"message %d" % number + bytes(40), timestamp=None) is None:
                await submit()
                batch = producer.create_batch()
                assert batch.append(key=None, value=b"message %d" % number + bytes(40), timestamp=None)
        await submit()
        await producer.stop()
        assert all([(await future).offset >= 0 for future in sent])

    asyncio.run(main())
    assert len(filled) > 2 and sum(filled) == count
    written = [batch.record_count for partition in range(3) for batch in dump_log(kafka, name, partition)]
    assert Counter(written) == Counter(filled)


def test_an_idempotent_producer_writes_each_once(
    kafka: Broker, topic: TopicFactory, read_back: ReadBackFactory
) -> None:
    name = topic(kafka)

    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, enable_idempotence=True)
        await producer.start()
        try:
            for number in range(50):
                await producer.send(name, b"%d" % number)
        finally:
            await producer.stop()

    asyncio.run(main())
    found = asyncio.run(consumed(kafka.bootstrap_servers, name, 50))
    assert [int(each.value) for each in found] == list(range(50))


def test_consume_transform_produce_in_a_transaction(kafka: Broker, topic: TopicFactory) -> None:
    """The offsets of the original's consumer go with the transaction; an aborted one leaves nothing."""
    source, target = topic(kafka), topic(kafka)

    async def main() -> None:
        async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as seed:
            for number in range(10):
                await seed.send(source, b"%d" % number)
        consumer = AIOKafkaConsumer(
            source,
            bootstrap_servers=kafka.bootstrap_servers,
            enable_auto_commit=False,
            group_id=source,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=source)
        await producer.start()
        with pytest.raises(ZeroDivisionError):
            await spoilt(producer)
        left = 10
        while left:
            offsets = {}
            async with producer.transaction():
                for where, messages in (await consumer.getmany(timeout_ms=int(HANG_MS))).items():
                    left -= len(messages)
                    for message in messages:
                        await producer.send(target, message.value + b"!")
                    offsets[where] = messages[-1].offset + 1
                await producer.send_offsets_to_transaction(offsets, source)
        (where,) = offsets
        assert await asyncio.wait_for(committed(consumer, where), HANG_S) == 10
        await consumer.stop()
        await producer.stop()

    async def spoilt(producer: AIOKafkaProducer) -> None:
        async with producer.transaction():
            await producer.send_and_wait(target, b"lost")
            raise ZeroDivisionError

    asyncio.run(main())
    found = asyncio.run(consumed(kafka.bootstrap_servers, target, 10, isolation_level="read_committed"))
    assert [each.value for each in found] == [b"%d!" % number for number in range(10)]


def test_the_older_of_two_producers_is_fenced(kafka: Broker, topic: TopicFactory) -> None:
    name = topic(kafka)

    async def main() -> None:
        options = {"bootstrap_servers": kafka.bootstrap_servers, "transactional_id": name}
        async with AIOKafkaProducer(**options) as older:  # type: ignore[arg-type]
            await older.begin_transaction()
            await older.send_and_wait(name, b"lost")
            async with AIOKafkaProducer(**options) as newer, newer.transaction():  # type: ignore[arg-type]
                await newer.send(name, b"kept")
            with pytest.raises(ProducerFenced):
                await older.commit_transaction()

    asyncio.run(main())
    found = asyncio.run(consumed(kafka.bootstrap_servers, name, 1, isolation_level="read_committed"))
    assert [each.value for each in found] == [b"kept"]


def test_a_start_in_vain_is_repeated(kafka: Broker, topic: TopicFactory) -> None:
    """As services do that come up before their broker."""
    name = topic(kafka)
    [port] = free_ports(1)

    async def main() -> int:
        lost = AIOKafkaProducer(bootstrap_servers=[f"127.0.0.1:{port}", f"localhost:{port}"])
        for _ in range(2):
            with pytest.raises(KafkaConnectionError, match="Unable to bootstrap from"):
                await lost.start()
        await lost.stop()
        one_of_two = AIOKafkaProducer(bootstrap_servers=[f"127.0.0.1:{port}", kafka.bootstrap_servers])
        async with one_of_two:
            found = await one_of_two.send_and_wait(name, b"v")
        with pytest.raises(ProducerClosed):
            await one_of_two.send(name, b"v")
        return int(found.offset)

    assert asyncio.run(main()) == 0


def test_a_loop_that_is_closed_before_the_outcome(kafka: Broker, topic: TopicFactory) -> None:
    """The record is delivered all the same; nothing hangs and nothing is raised in the sender's thread."""
    name = topic(kafka)

    async def main() -> AIOKafkaProducer:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=300)
        await producer.start()
        (await producer.send(name, b"v")).add_done_callback(lambda _done: None)
        return producer

    producer = asyncio.run(main())
    asyncio.run(producer.stop())
    assert len(asyncio.run(consumed(kafka.bootstrap_servers, name, 1))) == 1


def test_tls(secure: Secure, topic: TopicFactory) -> None:
    name = topic(secure.kafka)
    servers = secure.kafka.address_of("SSL")

    async def main() -> Any:
        context = create_ssl_context(cafile=secure.ca)
        async with AIOKafkaProducer(
            bootstrap_servers=servers, security_protocol="SSL", ssl_context=context
        ) as producer:
            found = await producer.send_and_wait(name, b"secret")
        stranger = AIOKafkaProducer(
            bootstrap_servers=servers, security_protocol="SSL", ssl_context=ssl.create_default_context()
        )
        with pytest.raises(KafkaConnectionError, match="certificate"):
            await stranger.start()
        await stranger.stop()
        return found

    assert asyncio.run(main()).offset == 0


def test_a_message_that_failed_is_an_error_of_its_future(kafka: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    name = topic(kafka)

    async def main() -> None:
        options = {"bootstrap_servers": kafka.bootstrap_servers, "max_request_size": 10_000_000}
        async with AIOKafkaProducer(**options) as producer:  # type: ignore[arg-type]
            future = await producer.send(name, bytes(5_000_000))
            with pytest.raises(KafkaError, match="MessageSizeTooLargeError"):
                await future
            told: list[Any] = []
            (await producer.send(name, bytes(5_000_000))).add_done_callback(told.append)
            await producer.flush()
            await asyncio.sleep(0)
            assert [type(each.exception()).__name__ for each in told] == ["MessageSizeTooLargeError"]

    asyncio.run(main())
