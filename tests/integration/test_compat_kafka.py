"""Programs as users of kafka-python write them, with the import alone changed, on both brokers."""

from __future__ import annotations

import json
import random
import threading
import time
from typing import Any

import pytest
from kafka import KafkaConsumer
from kafka import KafkaProducer as Original
from kafka import TopicPartition as TheirPartition

from forebay.compat.kafka import (
    DefaultSerializer,
    JsonSerializer,
    KafkaProducer,
    OffsetAndMetadata,
    StickyPartitioner,
    TopicPartition,
)
from forebay.compat.kafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError, NoBrokersAvailable
from tests.support.fixtures import Broker, ReadBackFactory, TopicFactory
from tests.support.pace import HANG_MS, HANG_S, until, within


def consumed(broker: Broker, topic: str, count: int, **options: Any) -> list[Any]:
    """So many messages of a topic, read by kafka-python's own consumer, which the embedded broker does not serve."""
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=HANG_MS,
        group_id=None,
        **options,
    )
    # It takes its partitions from what it knows, which may be of before the subscription, and waits for long then.
    until(lambda: consumer.partitions_for_topic(topic), "kafka-python knows the topic")
    consumer.subscribe([topic])
    with consumer:
        # The numbers first: the consumer is not asked for one message more, for which it would wait its whole time.
        return [message for _, message in zip(range(count), consumer, strict=False)]


def test_fire_and_forget(any_broker: Broker, topic: TopicFactory, read_back: ReadBackFactory) -> None:
    name = topic(any_broker, 3)
    producer = KafkaProducer(bootstrap_servers=any_broker.bootstrap_servers)
    assert not producer.bootstrap_connected()  # as in the original: it is done
    for number in range(100):
        producer.send(name, b"some message %d" % number)
    producer.flush()
    found = read_back(any_broker, name).wait_for(100)
    assert {message.value for message in found} == {b"some message %d" % number for number in range(100)}
    assert {message.partition for message in found} == {0, 1, 2}
    producer.close()


def test_wait_for_one_message(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker)
    producer = KafkaProducer(bootstrap_servers=[any_broker.bootstrap_servers], acks="all", retries=5)
    future = producer.send(name, b"raw bytes")
    try:
        record_metadata = future.get(timeout=HANG_S)
    except KafkaError as error:  # as in the usual example, which logs it
        pytest.fail(f"not delivered: {error}")
    assert (record_metadata.topic, record_metadata.partition, record_metadata.offset) == (name, 0, 0)
    assert future.is_done and future.succeeded()
    producer.close(timeout=HANG_S)


def test_keys_json_and_text(any_broker: Broker, topic: TopicFactory, read_back: ReadBackFactory) -> None:
    name = topic(any_broker, 4)
    with KafkaProducer(
        bootstrap_servers=any_broker.bootstrap_servers,
        key_serializer=DefaultSerializer(),
        value_serializer=JsonSerializer(),
    ) as producer:
        placed = {producer.send(name, {"number": number}, key="ping").get(HANG_S).partition for number in range(5)}
    assert len(placed) == 1
    with KafkaProducer(
        bootstrap_servers=any_broker.bootstrap_servers, value_serializer=lambda value: json.dumps(value).encode("ascii")
    ) as producer:
        producer.send(name, {"number": 5}, key=b"ping")
    found = read_back(any_broker, name).wait_for(6)
    assert [(message.key, json.loads(message.value or b"")["number"]) for message in found] == [
        (b"ping", number) for number in range(6)
    ]


def test_callbacks_that_are_chained(any_broker: Broker, topic: TopicFactory) -> None:
    name, seen, threads = topic(any_broker), [], set()

    def on_success(tag: str, metadata: Any) -> None:
        threads.add(threading.current_thread())
        seen.append((tag, metadata.topic, metadata.partition, metadata.offset))

    def on_error(error: BaseException) -> None:
        seen.append(("error", repr(error), 0, 0))

    producer = KafkaProducer(bootstrap_servers=any_broker.bootstrap_servers, linger_ms=20)
    for tag in ("a", "b", "c"):
        producer.send(name, tag.encode()).add_callback(on_success, tag).add_errback(on_error)
    producer.flush(timeout=HANG_S)
    assert seen == [("a", name, 0, 0), ("b", name, 0, 1), ("c", name, 0, 2)]
    assert threading.current_thread() not in threads
    producer.close()


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_compressed_with_headers_and_timestamps(
    kafka: Broker, topic: TopicFactory, read_back: ReadBackFactory, codec: str | None
) -> None:
    name = topic(kafka)
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, compression_type=codec) as producer:
        headers = [("content-encoding", b"base64"), ("é", b"")]
        sent = producer.send(name, value=b"v" * 500, headers=headers, timestamp_ms=1_700_000_000_000).get(HANG_S)
    assert (sent.serialized_header_size, sent.timestamp, sent.checksum) == (24, 1_700_000_000_000, None)
    (found,) = read_back(kafka, name).wait_for(1)
    assert (list(found.headers), found.timestamp, found.value) == (headers, 1_700_000_000_000, b"v" * 500)


def test_transactions_and_a_consumers_offsets(kafka: Broker, topic: TopicFactory) -> None:
    name, group = topic(kafka), topic(kafka)
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(name, value=b"no").get(HANG_S)
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send(name, value=b"yes").get(HANG_S)
    producer.send_offsets_to_transaction({TopicPartition(name, 0): OffsetAndMetadata(7, "note", 0)}, group)
    producer.commit_transaction()
    producer.close()
    (found,) = consumed(kafka, name, 1, isolation_level="read_committed")
    assert found.value == b"yes"
    with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id=group) as consumer:
        committed = consumer.committed(TheirPartition(name, 0), metadata=True)
    assert (committed.offset, committed.metadata) == (7, "note")


def test_metadata_and_metrics(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 3)
    with KafkaProducer(bootstrap_servers=any_broker.bootstrap_servers) as producer:
        assert producer.partitions_for(name) == {0, 1, 2}
        producer.send(name, b"v", partition=2).get(HANG_S)
        metrics = producer.metrics()
    assert metrics is not None and metrics[f"producer-topic-metrics.{name}"]["record-send-total"] == 1
    assert metrics["producer-metrics"]["record-error-total"] == 0


def test_errors_that_programs_catch(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker)
    with KafkaProducer(bootstrap_servers=any_broker.bootstrap_servers) as producer:
        with pytest.raises(MessageSizeTooLargeError):
            producer.send(name, b"x" * 2_000_000)
        with pytest.raises(ValueError, match="Unrecognized partition"):
            producer.send(name, b"x", partition=5)
        with pytest.raises(TypeError):
            producer.send(name, "text")
    begun = time.monotonic()
    with pytest.raises(NoBrokersAvailable):
        KafkaProducer(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=100)
    nobody = KafkaProducer(bootstrap_servers="127.0.0.1:1", api_version=(2, 8), max_block_ms=100)
    with pytest.raises(KafkaTimeoutError):
        nobody.send(name, b"x")
    nobody.close()
    assert time.monotonic() - begun < within(30)


def test_records_go_where_the_original_puts_them(kafka: Broker, topic: TopicFactory) -> None:
    name = topic(kafka, 12)
    keys = [random.randbytes(size) for size in range(1, 40)]
    placed = []
    for kind in (KafkaProducer, Original):
        with kind(bootstrap_servers=kafka.bootstrap_servers) as producer:
            placed.append([producer.send(name, b"v", key).get(HANG_S).partition for key in keys])
    assert placed[0] == placed[1]


def test_sticky_partitions_when_asked_for(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 8)
    with KafkaProducer(
        bootstrap_servers=any_broker.bootstrap_servers, partitioner=StickyPartitioner(), linger_ms=50
    ) as producer:
        futures = [producer.send(name, b"v") for _ in range(50)]
        assert len({future.get(HANG_S).partition for future in futures}) == 1
