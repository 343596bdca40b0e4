"""Whole producers against the embedded broker and a real one: what is sent is what an independent reader finds."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import Producer as Librdkafka

from forebay import KafkaProducer
from forebay.errors import BufferExhaustedError, KafkaError, KafkaTimeoutError, ProducerClosedError
from forebay.model import ProducerRecord, RecordMetadata
from forebay.testing import EmbeddedBroker
from tests.integration.workload import BASE, WAIT_S, Headers, Ledger, by_partition, lasting_topic, metric
from tests.support.fixtures import Broker, ProxyFactory, TopicFactory
from tests.support.pace import until, within_ms
from tests.support.readback import read_all
from tools.kafka import RealKafka

HEADERS: tuple[Headers, ...] = (
    (),
    (("h", b"1"),),
    (("null", None), ("empty", b""), ("", b"no key")),
    (("twice", b"1"), ("twice", b"2"), ("twice", b"1")),
    (("größe-尺寸-\U0001f4cf", b"\x00\xff"), ("long", b"x" * 300)),
)


def producer(broker: Broker, **options: Any) -> KafkaProducer:
    return KafkaProducer({"bootstrap.servers": broker.bootstrap_servers, **options})


# -- what a record may be -------------------------------------------------------------------------------------


def test_records_of_every_kind(any_broker: Broker, topic: TopicFactory) -> None:
    name = lasting_topic(topic, any_broker, 3)
    with producer(any_broker) as ours:
        ledger = Ledger(ours)
        for value in (None, b"", b"v", b"\x00" * 1000):
            for key in (None, b"", b"k", bytes(range(256))):
                for headers in HEADERS:
                    ledger.send(name, value, key, headers)
        ledger.check(any_broker)


@pytest.mark.parametrize("timestamps", [(0,), (2**62,), (2**62, 0, BASE, 1), tuple(range(BASE, BASE - 200_000, -999))])
def test_timestamps_of_every_kind(any_broker: Broker, topic: TopicFactory, timestamps: tuple[int, ...]) -> None:
    name = lasting_topic(topic, any_broker)
    with producer(any_broker) as ours:
        ledger = Ledger(ours)
        for timestamp in timestamps:
            ledger.send(name, b"%d" % timestamp, timestamp=timestamp)
        ledger.check(any_broker)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_values_from_one_byte_to_900_kilobytes(any_broker: Broker, topic: TopicFactory, codec: str) -> None:
    name = topic(any_broker)
    with producer(any_broker, **{"compression.type": codec}) as ours:
        ledger = Ledger(ours)
        for size in (1, 100, 16_000, 16_384, 16_385, 100_000, 3, 900_000, 2):
            ledger.send(name, bytes(number * 7919 % 251 for number in range(size)))
        ledger.check(any_broker)


def test_the_clock_stamps_what_has_no_timestamp(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker)
    with producer(any_broker) as ours:
        ours.send(name, b"before", timestamp=BASE)
        ours.send(name, b"now")
        ours.flush(WAIT_S)
    first, second = read_all(any_broker.bootstrap_servers, name)
    assert first.timestamp == BASE
    assert second.timestamp is not None and second.timestamp > BASE


def test_a_record_object_is_sent_as_it_is(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 2)
    with producer(any_broker) as ours:
        record = ProducerRecord(name, b"v", b"k", headers=(("h", None),), partition=1, timestamp=BASE)
        metadata = ours.send(record).result(WAIT_S)
    assert (metadata.topic, metadata.partition, metadata.offset) == (name, 1, 0)
    (found,) = read_all(any_broker.bootstrap_servers, name)
    assert found == (1, 0, b"k", b"v", (("h", None),), BASE)


# -- how it is sent -------------------------------------------------------------------------------------------

SETTINGS: tuple[dict[str, Any], ...] = (
    {"acks": "all", "enable.idempotence": True, "max.in.flight.requests.per.connection": 5, "linger.ms": 0},
    {"acks": "all", "enable.idempotence": True, "max.in.flight.requests.per.connection": 1, "linger.ms": 5},
    {"acks": "all", "enable.idempotence": False, "max.in.flight.requests.per.connection": 5, "linger.ms": 5},
    {"acks": "all", "enable.idempotence": False, "max.in.flight.requests.per.connection": 1, "linger.ms": 0},
    {"acks": 1, "max.in.flight.requests.per.connection": 5, "linger.ms": 0},
    {"acks": 1, "max.in.flight.requests.per.connection": 1, "linger.ms": 5, "compression.type": "lz4"},
    {"batch.size": 0, "compression.type": "snappy"},
    {"batch.size": 1 << 20, "linger.ms": 20},
    {"batch.size": 1 << 20, "linger.ms": 20, "compression.type": "gzip"},
    {"batch.size": 200, "linger.ms": 0, "max.request.size": 2000},
)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: "-".join(f"{value}" for value in each.values()))
def test_settings_change_the_way_and_not_the_records(
    any_broker: Broker, topic: TopicFactory, settings: dict[str, Any]
) -> None:
    name = topic(any_broker, 3)
    with producer(any_broker, **settings) as ours:
        ledger = Ledger(ours)
        for number in range(600):
            key = b"k%d" % (number % 50) if number % 3 else None
            ledger.send(name, b"value %d" % number, key, HEADERS[number % len(HEADERS)])
        ledger.check(any_broker)


@pytest.mark.parametrize("in_flight", [1, 5])
def test_without_acknowledgements_the_records_arrive_and_have_no_offset(
    any_broker: Broker, topic: TopicFactory, in_flight: int
) -> None:
    name = topic(any_broker, 2)
    with producer(any_broker, acks=0, **{"max.in.flight.requests.per.connection": in_flight}) as ours:
        ledger = Ledger(ours)
        for number in range(500):
            ledger.send(name, b"%d" % number, partition=number % 2)
        for sent, metadata in ledger.acknowledged():
            assert (metadata.offset, metadata.has_offset, metadata.timestamp) == (-1, False, sent.timestamp)

    def values() -> dict[int, list[bytes | None]]:
        return by_partition(read_all(any_broker.bootstrap_servers, name))

    # Written to the socket is all that is known: the broker may still be busy with it.
    until(lambda: sum(map(len, values().values())) == 500, "500 records in the topic")
    assert values() == {half: [b"%d" % number for number in range(half, 500, 2)] for half in (0, 1)}


def test_several_topics_and_a_hundred_partitions_in_one_producer(any_broker: Broker, topic: TopicFactory) -> None:
    names = [topic(any_broker, count) for count in (1, 60, 39)]
    with producer(any_broker) as ours:
        ledger = Ledger(ours)
        for number in range(3000):
            ledger.send(names[number % 3], b"%d" % number, b"%d" % number)
        stored = ledger.check(any_broker)
        assert {name: len({r.partition for r in stored[name]}) for name in names} == dict(
            zip(names, (1, 60, 39), strict=True)
        )
        assert len(ours.partitions_for(names[1])) == 60


def test_eight_threads_send_at_once(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 4)
    with producer(any_broker) as ours:
        ledger = Ledger(ours)

        def work(sender: int) -> None:
            for number in range(500):
                key = None if number % 2 else b"%d" % (number % 20)
                ledger.send(name, b"%d:%d" % (sender, number), key, sender=sender)

        threads = [threading.Thread(target=work, args=(sender,)) for sender in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stored = ledger.check(any_broker)
    assert len({record.value for record in stored[name]}) == 4000


def test_callbacks_come_in_order_per_partition_and_before_the_future(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 3)
    heard: list[tuple[int, int, BaseException | None]] = []
    done: list[Any] = []
    with producer(any_broker) as ours:
        futures = [
            ours.send(
                name,
                b"%d" % number,
                on_delivery=lambda report: heard.append(
                    (report.metadata.partition, report.metadata.offset, report.error)
                ),
            )
            for number in range(500)
        ]
        futures[-1].add_done_callback(done.append)
        outcome = {(m.partition, m.offset, None) for m in (future.result(WAIT_S) for future in futures)}
        assert set(heard) == outcome
        for partition in range(3):
            offsets = [offset for found, offset, _ in heard if found == partition]
            assert offsets == list(range(len(offsets)))
        assert done == futures[-1:]


# -- which partition ------------------------------------------------------------------------------------------

KEYS = [b"%d" % number for number in range(150)] + [b"\xff" * size for size in range(1, 40)] + ["schlüssel".encode()]


@pytest.mark.parametrize(
    ("ours_is", "theirs_is"), [("builtin", "murmur2_random"), ("consistent_random", "consistent_random")]
)
def test_a_key_lands_where_the_other_clients_put_it(
    any_broker: Broker, topic: TopicFactory, ours_is: str, theirs_is: str
) -> None:
    name = topic(any_broker, 7)
    with producer(any_broker, **{"partitioner.class": ours_is}) as ours:
        for key in KEYS:
            ours.send(name, b"ours", key)
    judge = Librdkafka({"bootstrap.servers": any_broker.bootstrap_servers, "partitioner": theirs_is, "log_level": 0})
    for key in KEYS:
        judge.produce(name, b"theirs", key)
    assert judge.flush(WAIT_S) == 0
    places: dict[bytes | None, dict[int, int]] = {value: {} for value in (b"ours", b"theirs")}
    for record in read_all(any_broker.bootstrap_servers, name):
        assert record.key is not None
        places[record.value][KEYS.index(record.key)] = record.partition
    assert places[b"ours"] == places[b"theirs"]
    assert len(places[b"ours"]) == len(KEYS)


def test_round_robin_and_explicit_partitions(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 4)
    with producer(any_broker, **{"partitioner.class": "round_robin"}) as ours:
        ledger = Ledger(ours)
        for number in range(40):
            ledger.send(name, b"%d" % number, b"same key")
        for number in range(20):
            ledger.send(name, b"%d" % number, b"same key", partition=3)
        found = [metadata.partition for _, metadata in ledger.acknowledged()]
        ledger.check(any_broker)
    turns = found[:40]
    assert sorted(turns[:4]) == [0, 1, 2, 3]
    assert turns == turns[:4] * 10
    assert found[40:] == [3] * 20


def test_a_callable_chooses_the_partition(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 5)
    seen: list[tuple[Any, ...]] = []

    def choose(*arguments: Any) -> int:
        seen.append(arguments)
        return int(arguments[1][-1:])

    with producer(any_broker, **{"partitioner.class": choose, "key.serializer": str.encode}) as ours:
        metadata = [ours.send(name, b"v", f"key {number % 5}") for number in range(20)]
        assert [each.result(WAIT_S).partition for each in metadata] == [number % 5 for number in range(20)]
    of_topic, key, key_bytes, value, value_bytes, cluster = seen[0]
    assert (of_topic, key, key_bytes, value, value_bytes) == (name, "key 0", b"key 0", b"v", b"v")
    assert cluster.partition_count(name) == 5


def test_records_without_a_key_use_every_partition(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 3)
    with producer(any_broker, **{"batch.size": 1000}) as ours:
        ledger = Ledger(ours)
        for number in range(2000):
            ledger.send(name, b"%050d" % number)
        stored = ledger.check(any_broker)
    assert len({record.partition for record in stored[name]}) == 3


# -- serializers and interceptors -----------------------------------------------------------------------------


class Tagging:
    """A serializer with Java's methods, which adds a header."""

    closed = False

    def serialize(self, topic: str, headers: Any, data: Any) -> bytes:
        headers.append(("type", type(data).__name__.encode()))
        return repr(data).encode()

    def close(self) -> None:
        self.closed = True


class Watching:
    """An interceptor that changes every record and keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[RecordMetadata | None, BaseException | None]] = []
        self.closed = False

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        headers = (*record.headers, ("by", b"watching"))
        return ProducerRecord(
            record.topic,
            record.value,
            record.key,
            headers=headers,
            partition=record.partition,
            timestamp=record.timestamp,
        )

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: BaseException | None) -> None:
        self.heard.append((metadata, error))

    def close(self) -> None:
        self.closed = True


def test_serializers_and_interceptors_take_part(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker)
    tagging, watching = Tagging(), Watching()
    options = {"key.serializer": str.encode, "value.serializer": tagging, "interceptor.classes": [watching]}
    with producer(any_broker, **options) as ours:
        futures = [ours.send(name, {"n": number}, f"{number}", timestamp=BASE) for number in range(5)]
        metadata = [future.result(WAIT_S) for future in futures]
    assert read_all(any_broker.bootstrap_servers, name) == [
        (0, n, b"%d" % n, b"{'n': %d}" % n, (("by", b"watching"), ("type", b"dict")), BASE) for n in range(5)
    ]
    assert watching.heard == [(each, None) for each in metadata]
    assert tagging.closed and watching.closed


# -- memory and waiting ---------------------------------------------------------------------------------------


def test_a_full_buffer_blocks_senders_until_the_broker_answers(
    any_broker: Broker, topic: TopicFactory, proxied: ProxyFactory
) -> None:
    name = topic(any_broker, 2)
    proxy = proxied(any_broker)
    with KafkaProducer({"bootstrap.servers": proxy.bootstrap_servers, "buffer.memory": 1 << 20}) as ours:
        ledger = Ledger(ours)
        ledger.send(name, b"first").result(WAIT_S)
        proxy.stall()
        thread = threading.Thread(target=lambda: [ledger.send(name, b"%0999d" % n) for n in range(3000)])
        thread.start()
        until(lambda: metric(ours, "waiting-threads") == 1, "the sending thread waits for memory")
        assert metric(ours, "buffer-available-bytes") < 16_384
        blocked_at = len(ledger.sent)
        assert 800 < blocked_at < 1100
        proxy.resume()
        thread.join(WAIT_S)
        assert not thread.is_alive()
        ledger.check(any_broker)
        until(lambda: metric(ours, "buffer-available-bytes") == 1 << 20, "all memory came back")
        assert metric(ours, "bufferpool-wait-time-ns-total") > 0


def test_send_nowait_says_when_there_is_no_room(any_broker: Broker, topic: TopicFactory, proxied: ProxyFactory) -> None:
    name = topic(any_broker)
    proxy = proxied(any_broker)
    with KafkaProducer({"bootstrap.servers": proxy.bootstrap_servers, "buffer.memory": 1 << 20}) as ours:
        with pytest.raises(KafkaTimeoutError, match=f"Topic {name} not present in metadata"):
            ours.send_nowait(name, b"metadata is not there yet")
        ours.partitions_for(name)
        proxy.stall()
        accepted: list[Any] = []

        def fill() -> None:
            while len(accepted) < 3000:
                accepted.append(ours.send_nowait(name, b"%0999d" % len(accepted)))

        with pytest.raises(BufferExhaustedError, match="buffer.memory 1048576, available") as caught:
            fill()
        assert isinstance(caught.value, BufferError)
        assert caught.value.context["phase"] == "waiting for memory"
        assert metric(ours, "buffer-exhausted-total") == 1
        proxy.resume()
        assert [future.result(WAIT_S).offset for future in accepted] == list(range(len(accepted)))


def test_send_gives_up_after_max_block(any_broker: Broker, topic: TopicFactory, proxied: ProxyFactory) -> None:
    name = topic(any_broker)
    proxy = proxied(any_broker)
    block_ms = within_ms(200)
    options = {"buffer.memory": 100_000, "max.block.ms": block_ms}
    with KafkaProducer({"bootstrap.servers": proxy.bootstrap_servers, **options}) as ours:
        ours.partitions_for(name)
        proxy.stall()
        futures = [ours.send(name, b"x" * 30_000) for _ in range(4)]
        error = futures[3].exception(WAIT_S)
        assert isinstance(error, BufferExhaustedError)
        text = f"Failed to allocate memory within the configured max blocking time {block_ms} ms."
        assert error.message.startswith(text)
        assert block_ms <= int(str(error.context["waited_ms"])) < within_ms(5000)
        proxy.resume()
        assert [future.result(WAIT_S).offset for future in futures[:3]] == [0, 1, 2]


def test_flush_has_a_limit_and_can_be_repeated(any_broker: Broker, topic: TopicFactory, proxied: ProxyFactory) -> None:
    name = topic(any_broker)
    proxy = proxied(any_broker)
    with KafkaProducer({"bootstrap.servers": proxy.bootstrap_servers, "linger.ms": 60_000}) as ours:
        ours.send(name, b"1")
        ours.flush(WAIT_S)
        proxy.stall()
        futures = [ours.send(name, b"2"), ours.send(name, b"3")]
        with pytest.raises(KafkaTimeoutError, match=r"flush: 2 record\(s\) have no outcome after 0.2 s"):
            ours.flush(0.2)
        assert not futures[0].done()
        proxy.resume()
        ours.flush(WAIT_S)
        assert [future.done() and future.result().offset for future in futures] == [1, 2]


def test_close_with_a_limit_ends_by_force_and_says_what_was_lost(
    any_broker: Broker, topic: TopicFactory, proxied: ProxyFactory
) -> None:
    name = topic(any_broker)
    proxy = proxied(any_broker)
    ours = KafkaProducer({"bootstrap.servers": proxy.bootstrap_servers})
    ours.send(name, b"1").result(WAIT_S)
    proxy.stall()
    futures = [ours.send(name, b"%d" % number) for number in range(7)]
    with pytest.raises(KafkaTimeoutError, match=r"close: 7 record\(s\) were not acknowledged within 0.2 s"):
        ours.close(0.2)
    errors = [future.exception(0) for future in futures]
    assert [(type(error), str(error)) for error in errors] == [(KafkaError, "Producer is closed forcefully.")] * 7
    with pytest.raises(ProducerClosedError, match="after producer has been closed"):
        ours.send(name, b"late")
    ours.close(0.2)


@pytest.mark.parametrize("linger_ms", [0, 60_000])
def test_close_sends_what_is_left(any_broker: Broker, topic: TopicFactory, linger_ms: int) -> None:
    name = topic(any_broker, 3)
    ours = producer(any_broker, **{"linger.ms": linger_ms})
    ledger = Ledger(ours)
    for number in range(1000):
        ledger.send(name, b"%d" % number)
    ours.close()
    assert all(sent.future.done() for sent in ledger.sent)
    ledger.check(any_broker)


# -- the broker's own time ------------------------------------------------------------------------------------


def test_the_append_time_of_the_log_is_the_records_time(kafka: RealKafka, topic: TopicFactory) -> None:
    name = topic(kafka, config={"message.timestamp.type": "LogAppendTime"})
    with producer(kafka, **{"linger.ms": 100}) as ours:
        futures = [ours.send(name, b"%d" % number, timestamp=BASE + number) for number in range(20)]
        found = [(metadata.offset, metadata.timestamp) for metadata in (future.result(WAIT_S) for future in futures)]
    assert found == [(record.offset, record.timestamp) for record in read_all(kafka.bootstrap_servers, name)]
    assert all(timestamp > BASE + 20 for _, timestamp in found)


def test_a_topic_that_a_client_asks_for_comes_into_being(any_broker: Broker) -> None:
    name = f"brought-into-being-{isinstance(any_broker, EmbeddedBroker)}"
    with producer(any_broker) as ours:
        ledger = Ledger(ours)
        for number in range(50):
            ledger.send(name, b"%d" % number)
        ledger.check(any_broker)


def test_metrics_count_what_went_over_the_wire(any_broker: Broker, topic: TopicFactory, proxied: ProxyFactory) -> None:
    name = topic(any_broker, 2)
    proxy = proxied(any_broker)
    with KafkaProducer({"bootstrap.servers": proxy.bootstrap_servers, "compression.type": "zstd"}) as ours:
        for number in range(500):
            ours.send(name, b"value %d" % number, partition=number % 2)
        ours.flush(WAIT_S)
        # The outcomes come before the request counts as answered, and metadata may be asked for at any time.
        until(lambda: metric(ours, "requests-in-flight") == 0, "all requests are answered")
        found = ours.metrics()
        assert found.value("record-send-total") == 500
        assert found.value("record-send-total", "producer-topic-metrics", topic=name) == 500
        assert found.value("record-error-total") == found.value("record-retry-total") == 0
        assert 0 < float(found.value("compression-rate-avg")) < 1
        assert found.value("requests-in-flight") == 0
        assert found.value("request-total") == found.value("response-total") == len(proxy.requests)
        # Each frame has four more bytes, its size.
        assert found.value("outgoing-byte-total") == sum(request.size + 4 for request in proxy.requests)
        assert float(found.value("incoming-byte-total")) > 0
