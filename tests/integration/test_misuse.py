"""What users get wrong: each is told quickly, in one line that names what and where."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from forebay import KafkaProducer
from forebay.errors import (
    ConfigError,
    IllegalArgumentError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    RecordTooLargeError,
    SerializationError,
    UnknownTopicOrPartitionError,
)
from forebay.testing import EmbeddedBroker
from tests.integration.workload import WAIT_S
from tests.support.fixtures import TopicFactory
from tests.support.pace import HANG_S, within, within_ms
from tools.kafka import RealKafka

BLOCK_MS = within_ms(600)
QUICK: dict[str, Any] = {
    "max.block.ms": BLOCK_MS,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 50,
}


def producer(bootstrap_servers: str, **options: Any) -> KafkaProducer:
    return KafkaProducer({"bootstrap.servers": bootstrap_servers, **QUICK, **options})


def failure(ours: KafkaProducer, topic: str = "t", **fields: Any) -> KafkaError:
    """The error of one record, which must come within max.block.ms and a second."""
    begun = time.monotonic()
    error = ours.send(topic, b"v", **fields).exception(WAIT_S)
    assert time.monotonic() - begun < BLOCK_MS / 1000 + within(1)
    assert error is not None
    assert "\n" not in str(error)
    return error


@contextlib.contextmanager
def server(answer: bytes, *, hang_up: bool = True) -> Iterator[str]:
    """Something on a port that is not Kafka: it sends ``answer`` to whatever comes first, and hangs up."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.02)

        def serve() -> None:
            kept = []
            while not ended.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                kept.append(connection)
                connection.settimeout(HANG_S)
                with contextlib.suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(answer)
                if hang_up:
                    kept.pop().close()
            for connection in kept:
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()


HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>no</html>"


def timeout_of(ours: KafkaProducer) -> KafkaTimeoutError:
    error = failure(ours)
    assert isinstance(error, KafkaTimeoutError)
    assert error.message == f"Topic t not present in metadata after {BLOCK_MS} ms."
    assert error.context["phase"] == "waiting for metadata"
    return error


# -- who is on the other side ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "server_name"),
    [(HTTP, "an HTTP server"), (b"SSH-2.0-OpenSSH_9.6\r\n", "an SSH server"), (b"\x15\x03\x01\x00\x02\x02\x50", "TLS")],
    ids=["http", "ssh", "tls-alert"],
)
def test_another_protocol_on_the_port_is_told_before_max_block_ms(answer: bytes, server_name: str) -> None:
    with server(answer) as address, producer(address, **{"max.block.ms": 10 * BLOCK_MS}) as ours:
        error = failure(ours)
    assert isinstance(error, ProtocolError)
    assert error.message.startswith(f"No address of bootstrap.servers answers as a Kafka: {address} ")
    assert "does not speak the Kafka protocol: " in error.message
    assert server_name in error.message


@pytest.mark.parametrize(
    ("answer", "text"),
    [(b"\x00\x00\x00\x04\xff\xff\xff\xff", "answered with correlation id -1"), (b"", "closed the connection")],
    ids=["wrong-correlation", "hang-up"],
)
def test_something_on_the_port_that_may_be_a_kafka(answer: bytes, text: str) -> None:
    with server(answer) as address, producer(address) as ours:
        reason = str(timeout_of(ours).context["last_error"])
    assert address in reason
    assert re.search(text, reason), reason


def test_a_port_that_takes_connections_and_says_nothing() -> None:
    request_ms = within_ms(150)
    timeouts = {"request.timeout.ms": request_ms, "delivery.timeout.ms": within_ms(1000)}
    with server(b"", hang_up=False) as address, producer(address, **timeouts) as ours:
        reason = str(timeout_of(ours).context["last_error"])
    assert address in reason
    assert "ApiVersions request" in reason and f"not answered within {request_ms} ms" in reason


def test_nobody_on_the_port() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with producer(address) as ours:
            reason = str(timeout_of(ours).context["last_error"])
            with pytest.raises(KafkaTimeoutError, match="Topic t not present in metadata"):
                ours.partitions_for("t")
    assert address in reason and "refused" in reason


def test_a_host_that_does_not_exist() -> None:
    with producer("no-such-host.invalid:9092") as ours:
        reason = str(timeout_of(ours).context["last_error"])
    assert "no-such-host.invalid:9092" in reason and "resolve" in reason


def test_nothing_is_lost_in_silence_when_there_is_no_broker(caplog: pytest.LogCaptureFixture) -> None:
    with server(HTTP) as address, producer(address):
        pass
    assert not [record for record in caplog.records if "not acknowledged" in record.message]


# -- topics ---------------------------------------------------------------------------------------------------


def test_a_topic_that_is_not_there(strict_kafka: RealKafka) -> None:
    with producer(strict_kafka.bootstrap_servers) as ours:
        error = failure(ours, "missing")
        assert isinstance(error, KafkaTimeoutError)
        assert error.message == f"Topic missing not present in metadata after {BLOCK_MS} ms."
        assert isinstance(error.__cause__, UnknownTopicOrPartitionError)
        assert str(error.context["last_error"]).startswith("UnknownTopicOrPartitionError: ")
        strict_kafka.create_topic("missing")
        assert ours.send("missing", b"v").result(WAIT_S).offset == 0


@pytest.mark.parametrize("name", ["", "with space", "slash/", "ä", "x" * 250, ".."])
def test_a_topic_name_that_cannot_be(strict_kafka: RealKafka, name: str) -> None:
    with producer(strict_kafka.bootstrap_servers) as ours:
        error = failure(ours, name)
        assert isinstance(error, InvalidTopicError)
        assert name[:40] in str(error)


@pytest.mark.parametrize("name", [None, 5, b"bytes"])
def test_a_topic_that_is_no_name(embedded: EmbeddedBroker, name: Any) -> None:
    with producer(embedded.bootstrap_servers) as ours, pytest.raises((TypeError, ValueError), match="topic must be a"):
        ours.send(name, b"v")


def test_a_partition_out_of_range(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded, 3)
    with producer(embedded.bootstrap_servers) as ours:
        error = failure(ours, name, partition=3)
        assert isinstance(error, KafkaTimeoutError)
        assert error.message == (
            f"Partition 3 of topic {name} with partition count 3 is not present in metadata after {BLOCK_MS} ms."
        )
        with pytest.raises(IllegalArgumentError, match="Invalid partition: -1"):
            ours.send(name, b"v", partition=-1)
        with pytest.raises(TypeError, match="'?partition'? .*got str"):
            ours.send(name, b"v", partition="1")  # type: ignore[arg-type]


def test_a_partitioner_that_is_out_of_range(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded, 3)
    with producer(embedded.bootstrap_servers, **{"partitioner.class": lambda *_: 3}) as ours:
        with pytest.raises(IllegalArgumentError, match=f"3.*{name}|{name}.*3"):
            ours.send(name, b"v")
        assert ours.send(name, b"v", partition=2).result(WAIT_S).offset == 0


# -- records --------------------------------------------------------------------------------------------------


def test_a_record_that_is_too_large_for_us(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    heard: list[Any] = []
    with producer(embedded.bootstrap_servers, **{"max.request.size": 1000}) as ours:
        error = ours.send(name, b"x" * 1000, on_delivery=heard.append).exception(0)
        assert isinstance(error, RecordTooLargeError)
        assert "larger than 1000" in error.message and "max.request.size" in error.message
        assert [(type(report.error), str(report.error)) for report in heard] == [(RecordTooLargeError, str(error))]
        assert ours.send(name, b"x" * 800).result(WAIT_S).offset == 0


def test_a_record_that_is_too_large_for_the_buffer(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    with producer(embedded.bootstrap_servers, **{"buffer.memory": 20_000}) as ours:
        error = ours.send(topic(embedded), b"x" * 20_000).exception(0)
        assert isinstance(error, RecordTooLargeError)
        assert "larger than 20000" in error.message and "buffer.memory" in error.message


def test_a_record_that_is_too_large_for_the_broker(kafka: RealKafka, topic: TopicFactory) -> None:
    name = topic(kafka, config={"max.message.bytes": "1000"})
    with producer(kafka.bootstrap_servers) as ours:
        error = ours.send(name, b"x" * 2000).exception(WAIT_S)
        assert isinstance(error, RecordTooLargeError)
        assert f"{name}-0" in str(error) or "max.message.bytes" in str(error)
        assert ours.send(name, b"v").result(WAIT_S).offset == 0


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_timestamp_that_the_broker_refuses(kafka: RealKafka, topic: TopicFactory, codec: str) -> None:
    name = topic(kafka)
    with producer(kafka.bootstrap_servers, **{"compression.type": codec}) as ours:
        error = ours.send(name, b"v", timestamp=2**62).exception(WAIT_S)
        assert type(error).__name__ == "InvalidTimestampError"
        assert ours.send(name, b"v").result(WAIT_S).offset == 0


@pytest.mark.parametrize("value", ["text", {"a": 1}, 5, ["list"]])
@pytest.mark.parametrize("field", ["key", "value"])
def test_what_no_serializer_turns_into_bytes(
    embedded: EmbeddedBroker, topic: TopicFactory, field: str, value: Any
) -> None:
    name = topic(embedded)
    with producer(embedded.bootstrap_servers) as ours:
        with pytest.raises(
            TypeError, match=f"{type(value).__name__}.*{field}.serializer|{field}.*serializer"
        ) as caught:
            ours.send(name, **{field: value})
        assert isinstance(caught.value, SerializationError)
        assert ours.send(name, b"v").result(WAIT_S).offset == 0


def test_a_serializer_that_fails(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    with producer(embedded.bootstrap_servers, **{"value.serializer": str.encode}) as ours:
        with pytest.raises(SerializationError, match="value") as caught:
            ours.send(name, 5)
        assert caught.value.__cause__ is not None
        assert ours.send(name, "v").result(WAIT_S).offset == 0


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ([("h", "text")], "header 'h' must be bytes or None, got str"),
        ([(b"h", b"v")], "key of header 0 must be a str, got bytes"),
        (["h"], "header 0 must be a pair"),
        ([("a", b"1"), ("b",)], "header 1 must be a pair"),
    ],
)
def test_headers_that_cannot_be(embedded: EmbeddedBroker, topic: TopicFactory, headers: Any, text: str) -> None:
    with producer(embedded.bootstrap_servers) as ours, pytest.raises(TypeError, match=text):
        ours.send(topic(embedded), b"v", headers=headers)


@pytest.mark.parametrize("timestamp", [-1, 2**63])
def test_timestamps_that_cannot_be(embedded: EmbeddedBroker, topic: TopicFactory, timestamp: int) -> None:
    with (
        producer(embedded.bootstrap_servers) as ours,
        pytest.raises(IllegalArgumentError, match=f"Invalid timestamp: {timestamp}"),
    ):
        ours.send(topic(embedded), b"v", timestamp=timestamp)


# -- options --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"bootstrap.serverz": "127.0.0.1:9092"}, "bootstrap.serverz.*bootstrap.servers"),
        ({"acks": "2"}, "'2'.*acks: must be one of all, -1, 0, 1"),
        ({"linger.ms": -1}, "-1.*linger.ms: must be an integer, at least 0"),
        ({"compression.type": "brotli"}, "'brotli'.*compression.type: must be one of none, .*zstd"),
        ({"bootstrap.servers": "127.0.0.1"}, "127.0.0.1.*port"),
        ({"delivery.timeout.ms": 1, "linger.ms": 5}, "delivery.timeout.ms"),
        ({"enable.idempotence": True, "acks": 1}, "acks"),
        ({"transactional.id": "t", "acks": 1}, "transactional.id"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is GSSAPI by default.*PLAIN, SCRAM"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "sasl.oauthbearer.token.provider"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){text}"):
        KafkaProducer({"bootstrap.servers": "127.0.0.1:9092", **options})


def test_no_bootstrap_servers() -> None:
    with pytest.raises(ConfigError, match="bootstrap.servers"):
        KafkaProducer()


def test_a_serializer_that_cannot_be_made() -> None:
    class Broken:
        def configure(self, configs: Any, is_key: bool) -> None:
            raise ValueError("no schema registry")

        def serialize(self, topic: str, data: Any) -> bytes:
            return b""

    before = threading.active_count()
    with pytest.raises(KafkaError, match="Failed to construct kafka producer: .*no schema registry") as caught:
        KafkaProducer({"bootstrap.servers": "127.0.0.1:9092", "value.serializer": Broken})
    assert caught.value.__cause__ is not None
    assert threading.active_count() == before
