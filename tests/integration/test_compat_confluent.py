"""Programs as users of confluent-kafka write them, with the import alone changed, on a real Kafka."""

from __future__ import annotations

import json
import threading
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import Producer as Original

from forebay.compat.confluent_kafka import KafkaException, Message, Producer, SerializingProducer
from tests.support.fixtures import Broker, ReadBackFactory, TopicFactory
from tests.support.pace import HANG_S


def test_produce_with_a_report_per_message(kafka: Broker, topic: TopicFactory) -> None:
    """Messages of a list, a report for each, poll between them and flush at the end."""
    name = topic(kafka, 3)
    reports: list[tuple[Any, int | None]] = []

    def report(err: Any, msg: Message) -> None:
        reports.append((err, msg.partition()))

    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for word in ("one", "two", "three"):
        producer.poll(0)
        producer.produce(name, word.encode("utf-8"), callback=report)
    assert producer.flush() == 0
    assert len(reports) == 3 and all(err is None and part in (0, 1, 2) for err, part in reports)


def test_one_message_and_wait_for_its_report(kafka: Broker, topic: TopicFactory) -> None:
    """A blocking write: produce, then poll until the report is there."""
    name, acked = topic(kafka), []
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "host-1"})
    producer.produce(name, key="key", value="value", callback=lambda err, msg: acked.append((err, msg.offset())))
    assert producer.poll(HANG_S) == 1 and acked == [(None, 0)]


def test_a_full_queue_is_served_and_tried_again(kafka: Broker, topic: TopicFactory) -> None:
    """BufferError is caught, poll makes room, and the message goes again; nothing is lost."""
    name, delivered, full = topic(kafka), [], 0
    options = {"bootstrap.servers": kafka.bootstrap_servers, "queue.buffering.max.messages": 50, "linger.ms": 0}
    producer = Producer(options)
    for number in range(500):
        while True:
            try:
                producer.produce(name, str(number), on_delivery=lambda err, msg: delivered.append((err, msg.value())))
                break
            except BufferError:
                full += 1
                producer.poll(1)
    assert producer.flush(HANG_S) == 0 and full > 0
    assert sorted(int(value) for err, value in delivered if err is None) == list(range(500))


def test_json_with_keys_headers_and_timestamps(kafka: Broker, topic: TopicFactory, read_back: ReadBackFactory) -> None:
    name = topic(kafka)
    with Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "acks": "all", "compression.type": "gzip"}
    ) as producer:
        order = {"id": 7, "total": 12.5}
        headers = {"source": "shop", "trace": b"\x00\x01", "none": None}
        producer.produce(name, json.dumps(order), key=str(order["id"]), headers=headers, timestamp=1_700_000_000_000)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": name})
    consumer.assign([TopicPartition(name, 0, 0)])
    found = consumer.poll(HANG_S)
    consumer.close()
    assert found is not None and found.error() is None
    assert (json.loads(found.value() or b""), found.key(), found.timestamp()[1]) == (order, b"7", 1_700_000_000_000)
    assert found.headers() == [("source", b"shop"), ("trace", b"\x00\x01"), ("none", None)]


def test_consume_transform_produce_in_a_transaction(kafka: Broker, topic: TopicFactory) -> None:
    """Offsets of a confluent-kafka consumer are committed with the transaction; an aborted one leaves nothing."""
    source, target = topic(kafka), topic(kafka)
    with Producer({"bootstrap.servers": kafka.bootstrap_servers}) as seed:
        for number in range(10):
            seed.produce(source, str(number))
    options = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": source, "auto.offset.reset": "earliest"}
    consumer = Consumer({**options, "enable.auto.commit": False, "isolation.level": "read_committed"})
    consumer.subscribe([source])
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": source})
    producer.init_transactions(HANG_S)
    messages = consumer.consume(10, HANG_S)
    producer.begin_transaction()
    producer.produce(target, "lost")
    producer.abort_transaction()
    producer.begin_transaction()
    for message in messages:
        producer.produce(target, (message.value() or b"") + b"!")
    group = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction(consumer.position(consumer.assignment()), group)
    producer.commit_transaction()
    assert [part.offset for part in consumer.committed([TopicPartition(source, 0)], 10)] == [len(messages)]
    consumer.close()
    reader = Consumer({**options, "group.id": target, "isolation.level": "read_committed"})
    reader.assign([TopicPartition(target, 0, 0)])
    found = reader.consume(len(messages), HANG_S)
    reader.close()
    assert [message.value() for message in found] == [(message.value() or b"") + b"!" for message in messages]


def test_reports_from_a_thread_that_polls(kafka: Broker, topic: TopicFactory) -> None:
    """A thread of its own polls, as programs with an event loop have it."""
    name, acked, done = topic(kafka), [], threading.Event()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})

    def serve() -> None:
        while not done.is_set():
            producer.poll(0.1)

    thread = threading.Thread(target=serve)
    thread.start()
    for number in range(100):
        producer.produce(name, str(number), on_delivery=lambda err, msg: acked.append(threading.current_thread()))
    while len(acked) < 100:
        assert producer.poll(0.01) >= 0
    done.set()
    thread.join()
    assert set(acked) <= {thread, threading.current_thread()}


def test_list_topics_and_errors(kafka: Broker, topic: TopicFactory) -> None:
    name = topic(kafka, 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    cluster = producer.list_topics(timeout=HANG_S)
    assert set(cluster.topics[name].partitions) == {0, 1} and cluster.brokers
    assert list(producer.list_topics(name, HANG_S).topics) == [name]
    failed: list[Any] = []
    producer.produce(name, b"x" * 900_000, partition=1)
    with pytest.raises(KafkaException) as caught:
        producer.produce(name, b"x" * 2_000_000)
    assert caught.value.args[0].name() == "MSG_SIZE_TOO_LARGE"
    assert producer.flush(HANG_S) == 0 and not failed
    nobody = Producer({"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 200})
    nobody.produce(name, b"v", on_delivery=lambda err, msg: failed.append(err))
    assert nobody.flush(HANG_S) == 0 and [err.name() for err in failed] == ["_MSG_TIMED_OUT"]


def test_serializing_producer(kafka: Broker, topic: TopicFactory) -> None:
    name, values = topic(kafka), []
    producer = SerializingProducer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "key.serializer": lambda key, context: key.encode(),
            "value.serializer": lambda value, context: json.dumps(value).encode(),
        }
    )
    producer.produce(
        topic=name, key="k", value={"a": 1}, on_delivery=lambda err, msg: values.append((err, msg.value()))
    )
    producer.flush()
    assert values == [(None, b'{"a": 1}')]


@pytest.mark.parametrize("partitioner", ["consistent_random", "consistent", "murmur2_random", "murmur2", "fnv1a"])
def test_keys_go_where_the_original_puts_them(kafka: Broker, topic: TopicFactory, partitioner: str) -> None:
    name = topic(kafka, 12)
    placed: list[dict[bytes, int]] = []
    for kind in (Producer, Original):
        found: dict[bytes, int] = {}
        producer = kind({"bootstrap.servers": kafka.bootstrap_servers, "partitioner": partitioner})
        note = partial(_note, found)
        for number in range(40):
            producer.produce(name, b"v", key=f"key-{number}", on_delivery=note)
        assert producer.flush(HANG_S) == 0
        placed.append(found)
    assert placed[0] == placed[1] and len(placed[0]) == 40


def _note(found: dict[bytes, int], err: Any, msg: Any) -> None:
    assert err is None
    found[msg.key()] = msg.partition()
