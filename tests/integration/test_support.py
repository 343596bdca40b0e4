"""The fixtures themselves, proved with confluent-kafka as the producer: nothing of ours is judged here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from forebay.testing import DISCONNECT, EmbeddedBroker
from tests.support.fixtures import (
    Broker,
    ProxyFactory,
    ReadBackFactory,
    TopicFactory,
)
from tests.support.pace import HANG_S, within, within_ms
from tests.support.proxy import LOST, TORN, UNHEARD, Fault, away, late, refused, told
from tests.support.readback import ReadRecord, read_all
from tests.support.rewrite import PRODUCE, limit_versions
from tools.kafka import RealKafka, dump_log, producer_performance
from tools.kafka.jars import archive_of

INIT_PRODUCER_ID = 22


def produce(
    bootstrap_servers: str,
    topic: str,
    values: list[bytes],
    *,
    partition: int = 0,
    plain: bool = False,
    **settings: Any,
) -> list[str]:
    """Writes the values (``plain``: without headers); returns a text for each, empty where it was acknowledged."""
    outcomes: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0, **settings})
    for value in values:
        producer.produce(
            topic,
            value,
            key=b"k" + value,
            headers=None if plain else [("h", value), ("n", None)],
            timestamp=1_700_000_000_000,
            partition=partition,
            on_delivery=lambda error, _: outcomes.append(str(error.name()) if error else ""),
        )
    assert producer.flush(HANG_S) == 0
    return outcomes


def test_what_is_written_is_read_back_while_writing(
    any_broker: Broker, topic: TopicFactory, read_back: ReadBackFactory
) -> None:
    name = topic(any_broker, 3)
    reader = read_back(any_broker, name)
    values = [b"%d" % number for number in range(500)]
    assert produce(any_broker.bootstrap_servers, name, values, partition=2) == [""] * 500
    records = reader.wait_for(500)
    assert records[7] == ReadRecord(2, 7, b"k7", b"7", (("h", b"7"), ("n", None)), 1_700_000_000_000)
    assert [record.value for record in records] == values


def test_read_all_sorts_by_partition_and_offset(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 2)
    for partition in (1, 0):
        produce(any_broker.bootstrap_servers, name, [b"a", b"b"], partition=partition)
    found = read_all(any_broker.bootstrap_servers, name)
    assert [(record.partition, record.offset, record.value) for record in found] == [
        (0, 0, b"a"),
        (0, 1, b"b"),
        (1, 0, b"a"),
        (1, 1, b"b"),
    ]


def test_an_empty_topic_reads_as_nothing(any_broker: Broker, topic: TopicFactory) -> None:
    assert read_all(any_broker.bootstrap_servers, topic(any_broker, 2)) == []


def test_too_few_records_are_a_timeout_that_says_how_many(
    embedded: EmbeddedBroker, topic: TopicFactory, read_back: ReadBackFactory
) -> None:
    name = topic(embedded)
    produce(embedded.bootstrap_servers, name, [b"1", b"2"])
    reader = read_back(embedded, name)
    reader.wait_for(2)
    with pytest.raises(TimeoutError, match="2 of 3 records"):
        reader.wait_for(3, timeout_s=0.5)


def test_dropped_records_are_an_error_of_the_reader(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    produce(embedded.bootstrap_servers, name, [b"x" * 100_000] * 100)
    with pytest.raises(RuntimeError, match="Offset out of range"):
        read_all(embedded.bootstrap_servers, name)


# -- the embedded broker's faults -----------------------------------------------------------------------------


def test_pushed_errors_are_retried_until_used_up(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    embedded.start_request_log()
    embedded.push_request_errors(PRODUCE, 6, DISCONNECT)
    assert produce(embedded.bootstrap_servers, name, [b"1"]) == [""]
    assert len(embedded.requests([PRODUCE])) == 3


def test_a_partition_error_fails_only_that_partition(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded, 2)
    embedded.push_partition_errors(name, 0, PRODUCE, 10)
    assert produce(embedded.bootstrap_servers, name, [b"1"], partition=1) == [""]
    assert produce(embedded.bootstrap_servers, name, [b"1"], partition=0) == ["MSG_SIZE_TOO_LARGE"]


def test_a_node_that_is_down_answers_when_it_is_up_again(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    embedded.node_down(1)
    settings: dict[str, Any] = {"message.timeout.ms": 300}
    assert produce(embedded.bootstrap_servers, name, [b"1"], **settings) == ["_MSG_TIMED_OUT"]
    embedded.node_up(1)
    assert produce(embedded.bootstrap_servers, name, [b"1"]) == [""]


def test_the_leader_moves() -> None:
    with EmbeddedBroker(nodes=2, topics={"t": 1}) as broker:
        broker.set_leader("t", 0, 1)
        produce(broker.bootstrap_servers, "t", [b"1"])
        broker.start_request_log()
        broker.set_leader("t", 0, 2)
        assert produce(broker.bootstrap_servers, "t", [b"2"]) == [""]
        assert {request.node for request in broker.requests([PRODUCE])} == {2}


# -- the real broker ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_log_dumper_reads_every_codec(kafka: RealKafka, topic: TopicFactory, codec: str) -> None:
    name = topic(kafka)
    settings: dict[str, Any] = {"compression.type": codec, "enable.idempotence": True}
    produce(kafka.bootstrap_servers, name, [b"a", b"b c"], **settings)
    batches = dump_log(kafka, name, 0)
    assert {(batch.codec, batch.magic, batch.valid) for batch in batches} <= {(codec, 2, True), ("none", 2, True)}
    records = [record for batch in batches for record in batch.records]
    assert [(record.key, record.value, record.header_keys) for record in records] == [
        ("ka", "a", ("h", "n")),
        ("kb c", "b c", ("h", "n")),
    ]
    assert [record.sequence for record in records] == [0, 1]


def test_the_java_perf_test_reports_its_numbers(kafka: RealKafka, topic: TopicFactory) -> None:
    name = topic(kafka, 2)
    result = producer_performance(kafka, name, records=2000, record_size=100, properties={"linger.ms": "5"})
    assert result.records == 2000
    assert result.records_per_s > 0
    assert result.cpu_s > 0
    assert len(read_all(kafka.bootstrap_servers, name)) == 2000


def test_a_tool_that_fails_says_why(kafka: RealKafka) -> None:
    with pytest.raises(RuntimeError, match=r"GetOffsetShell ended with status 1"):
        kafka.run_tool("org.apache.kafka.tools.GetOffsetShell", "--no-such-option")


@pytest.mark.parametrize(("highest", "timestamp"), [(0, -1), (2, 1_700_000_000_000)])
def test_the_legacy_broker_takes_magic_0_and_1(
    legacy_kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, highest: int, timestamp: int
) -> None:
    name = topic(legacy_kafka)
    proxy = proxied(legacy_kafka, hooks=[limit_versions({PRODUCE: (0, highest)})])
    assert produce(proxy.bootstrap_servers, name, [b"old"], plain=True) == [""]
    assert {request.version for request in proxy.requests if request.api_key == PRODUCE} == {highest}
    assert [(record.value, record.timestamp) for record in read_all(legacy_kafka.bootstrap_servers, name)] == [
        (b"old", timestamp)
    ]


def test_three_nodes_go_on_with_two(three_kafka: RealKafka, topic: TopicFactory) -> None:
    name = topic(three_kafka, 3, replication=3)
    produce(three_kafka.bootstrap_servers, name, [b"1"], acks="all")
    three_kafka.kill_node(0)
    assert three_kafka.pid(0) is None
    assert produce(three_kafka.bootstrap_servers, name, [b"2"], acks="all") == [""]
    assert [record.value for record in read_all(three_kafka.bootstrap_servers, name)] == [b"1", b"2"]


# -- the proxy ------------------------------------------------------------------------------------------------


def test_clients_stay_behind_the_proxy(any_broker: Broker, topic: TopicFactory, proxied: ProxyFactory) -> None:
    name = topic(any_broker)
    proxy = proxied(any_broker)
    assert produce(proxy.bootstrap_servers, name, [b"1"]) == [""]
    assert PRODUCE in {request.api_key for request in proxy.requests}
    assert len(read_all(proxy.bootstrap_servers, name)) == 1


def test_the_proxy_lowers_the_advertised_versions(
    any_broker: Broker, topic: TopicFactory, proxied: ProxyFactory
) -> None:
    name = topic(any_broker)
    proxy = proxied(any_broker, hooks=[limit_versions({PRODUCE: (0, 7)})])
    assert produce(proxy.bootstrap_servers, name, [b"1"]) == [""]
    assert {request.version for request in proxy.requests if request.api_key == PRODUCE} == {7}


def test_a_lost_answer_is_written_once_by_an_idempotent_producer(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory
) -> None:
    name = topic(kafka)
    proxy = proxied(kafka)
    proxy.lose_answers(PRODUCE)
    assert produce(proxy.bootstrap_servers, name, [b"1"], **{"enable.idempotence": True}) == [""]
    assert len([request for request in proxy.requests if request.api_key == PRODUCE]) == 2
    assert len(read_all(kafka.bootstrap_servers, name)) == 1


@pytest.mark.parametrize(
    ("fault", "copies"),
    [(LOST, 1), (UNHEARD, 2), (TORN, 2), (away(100), 1), (refused(7), 1), (told(7), 2), (late(within_ms(3500)), 2)],
    ids=["lost", "unheard", "torn", "away", "refused", "told", "late"],
)
def test_what_is_planned_happens_to_the_next_request(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, fault: Fault, copies: int
) -> None:
    """Without idempotence a record is there as often as the broker saw it."""
    name = topic(kafka)
    proxy = proxied(kafka)
    proxy.plan(PRODUCE, fault)
    limit_ms = within_ms(1000)
    settings: dict[str, Any] = {
        "reconnect.backoff.ms": 20,
        "socket.timeout.ms": limit_ms,
        "request.timeout.ms": limit_ms,
    }
    assert produce(proxy.bootstrap_servers, name, [b"1"], **settings) == [""]
    assert proxy.planned() == 0
    assert len([request for request in proxy.requests if request.api_key == PRODUCE]) == 2
    assert len(read_all(kafka.bootstrap_servers, name)) == copies


def test_refused_for_good(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory) -> None:
    name = topic(kafka)
    proxy = proxied(kafka)
    proxy.plan(PRODUCE, refused(87), refused(29))
    assert produce(proxy.bootstrap_servers, name, [b"1"]) == ["INVALID_RECORD"]
    assert produce(proxy.bootstrap_servers, name, [b"1"]) == ["TOPIC_AUTHORIZATION_FAILED"]
    assert read_all(kafka.bootstrap_servers, name) == []


def test_stalled_answers_come_when_resumed(any_broker: Broker, topic: TopicFactory, proxied: ProxyFactory) -> None:
    name = topic(any_broker)
    proxy = proxied(any_broker)
    producer = Producer({"bootstrap.servers": proxy.bootstrap_servers, "log_level": 0})
    producer.produce(name, b"1")
    assert producer.flush(HANG_S) == 0
    proxy.stall()
    producer.produce(name, b"2")
    assert producer.flush(0.3) == 1
    proxy.resume()
    assert producer.flush(HANG_S) == 0


def test_a_proxy_that_refuses_takes_connections_again(
    any_broker: Broker, topic: TopicFactory, proxied: ProxyFactory
) -> None:
    name = topic(any_broker)
    proxy = proxied(any_broker)
    producer = Producer({"bootstrap.servers": proxy.bootstrap_servers, "log_level": 0, "reconnect.backoff.ms": 50})
    producer.produce(name, b"1")
    assert producer.flush(HANG_S) == 0
    proxy.refuse()
    producer.produce(name, b"2")
    assert producer.flush(0.3) == 1
    proxy.accept()
    assert producer.flush(HANG_S) == 0


def test_a_hook_that_fails_fails_the_test(embedded: EmbeddedBroker, proxied: ProxyFactory) -> None:
    def hook(_: object) -> bytes:
        raise ZeroDivisionError("in the hook")

    proxy = proxied(embedded, hooks=[hook])
    with pytest.raises(KafkaException):
        Producer({"bootstrap.servers": proxy.bootstrap_servers, "log_level": 0}).list_topics(timeout=within(0.5))
    with pytest.raises(ZeroDivisionError, match="in the hook"):
        proxy.close()


@pytest.mark.skipif(sys.platform != "linux", reason="what a process has mapped is read through /proc")
def test_a_broker_reads_its_classes_out_of_the_archive(kafka: RealKafka) -> None:
    archive = archive_of(kafka.version)
    if not archive.exists():
        pytest.skip("this Java made no archive of classes")
    assert str(archive) in Path(f"/proc/{kafka.pid()}/maps").read_text()
