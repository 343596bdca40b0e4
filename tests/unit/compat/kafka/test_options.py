"""kafka-python's options: names, units, defaults, and what is refused."""

from __future__ import annotations

import logging
import socket
import ssl
from typing import Any

import pytest
from kafka import KafkaProducer as Original

from forebay.compat.kafka._options import DEFAULTS, read_options
from forebay.compat.kafka.errors import KafkaConfigurationError
from forebay.compat.kafka.partitioner import DefaultPartitioner, StickyPartitioner


def test_names_and_defaults_are_the_originals() -> None:
    theirs = Original.DEFAULT_CONFIG
    assert DEFAULTS.keys() == theirs.keys()
    objects = {"partitioner", "selector", "kafka_client"}
    assert {name: DEFAULTS[name] for name in DEFAULTS.keys() - objects} == {
        name: theirs[name] for name in theirs.keys() - objects
    }


def test_what_the_defaults_mean_here() -> None:
    options = read_options({})
    native = options.native
    assert native["bootstrap.servers"] == ("localhost:9092",)
    assert (native["acks"], native["enable.idempotence"], native["retries"]) == (-1, True, 2**31 - 1)
    assert (native["linger.ms"], native["batch.size"], native["compression.type"]) == (0, 16_384, "none")
    assert (native["delivery.timeout.ms"], native["request.timeout.ms"]) == (120_000, 30_000)
    assert (native["send.buffer.bytes"], native["receive.buffer.bytes"]) == (-1, -1)
    assert native["reconnect.backoff.max.ms"] == 30_000 and native["buffer.memory"] == 33_554_432
    assert type(options.shown["partitioner"]) is DefaultPartitioner and options.choose is None
    assert not options.is_sticky and read_options({"partitioner": StickyPartitioner()}).is_sticky


def test_names_and_units() -> None:
    given: dict[str, Any] = {
        "bootstrap_servers": "a, b:1,[::1]:2,::1,PLAINTEXT://c,PLAINTEXT://d:5,[::2]",
        "acks": "all",
        "retries": 5,
        "linger_ms": 0.5,
        "compression_type": "gzip",
        "buffer_memory": 10_000_000,
        "max_block_ms": 7.0,
        "send_buffer_bytes": 4096,
        "client_id": "mine",
        "transactional_id": "tx",
        "metrics_num_samples": 3,
    }
    native = read_options(given).native
    servers = ("a:9092", "b:1", "[::1]:2", "[::1]:9092", "c:9092", "d:5", "[::2]:9092")
    assert native["bootstrap.servers"] == servers
    assert (native["acks"], native["retries"], native["linger.ms"], native["max.block.ms"]) == (-1, 5, 1, 7)
    assert (native["compression.type"], native["buffer.memory"]) == ("gzip", 10_000_000)
    assert (native["send.buffer.bytes"], native["client.id"], native["transactional.id"]) == (4096, "mine", "tx")
    assert read_options({"bootstrap_servers": ["a:1", "b"]}).native["bootstrap.servers"] == ("a:1", "b:9092")


@pytest.mark.parametrize(
    ("delivery", "request_ms", "linger", "expected"),
    [(10_000, 30_000, 0, (10_000, 0)), (120_000, 200_000, 5, (119_995, 5)), (100, 30_000, 400, (50, 50))],
)
def test_a_short_delivery_timeout_shortens_requests(
    delivery: int, request_ms: int, linger: int, expected: tuple[int, int]
) -> None:
    given = {"delivery_timeout_ms": delivery, "request_timeout_ms": request_ms, "linger_ms": linger}
    native = read_options(given).native
    assert (native["request.timeout.ms"], native["linger.ms"]) == expected


@pytest.mark.parametrize(
    "given",
    [
        *({"acks": 1}, {"acks": 0}, {"retries": 0}, {"max_in_flight_requests_per_connection": 6}),
        {"api_version": (0, 10)},
    ],
)
def test_other_options_switch_idempotence_off(given: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    options = read_options(given)
    assert options.native["enable.idempotence"] is False and options.shown["enable_idempotence"] is False
    assert f"Idempotence is switched off, because of {next(iter(given))}=" in caplog.text
    for asked in ({"enable_idempotence": True}, {"transactional_id": "tx"}):
        with pytest.raises(KafkaConfigurationError, match=f"incompatible with user-provided {next(iter(given))}="):
            read_options({**given, **asked})


def test_transactions_need_idempotence() -> None:
    with pytest.raises(KafkaConfigurationError, match="transactional_id without enable_idempotence"):
        read_options({"transactional_id": "tx", "enable_idempotence": False})


def test_security(tmp_path: Any) -> None:
    plain = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": "u"}
    native = read_options({**plain, "sasl_plain_password": "p"}).native
    assert (native["sasl.mechanism"], native["sasl.username"]) == ("PLAIN", "u")
    context = ssl.create_default_context()
    native = read_options({"security_protocol": "SSL", "ssl_context": context, "ssl_cafile": "nowhere"}).native
    assert native["ssl.context"] is context
    native = read_options({"security_protocol": "SSL", "ssl_check_hostname": False}).native
    assert native["ssl.endpoint.identification.algorithm"] == ""


def test_what_has_no_effect_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "forebay.compat")
    read_options({"api_version": (2, 5), "sock_chunk_bytes": 4096, "selector": object})
    assert caplog.text.count("has no effect in this client") == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nonsense": 1, "more": 2}, "Unrecognized configs: more, nonsense"),
        ({"metric_reporters": [object]}, "metric_reporters is not served here: nothing is pushed"),
        ({"kafka_client": object}, "kafka_client is not served here"),
        ({"sasl_kerberos_domain_name": "x"}, "the host that it advertises"),
        ({"socket_options": [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]}, "TCP_NODELAY is set in any case"),
        ({"allow_auto_create_topics": False}, "auto.create.topics.enable decides"),
        ({"acks": 2}, "acks"),
        ({"compression_type": "brotli"}, "brotli"),
        ({"bootstrap_servers": 5}, "bootstrap_servers must be"),
        ({"bootstrap_servers": ""}, "bootstrap.servers"),
        ({"key_serializer": 5}, "key_serializer must be"),
        ({"partitioner": 5}, "partitioner must have"),
        ({"linger_ms": "soon"}, "linger"),
        ({"delivery_timeout_ms": "soon"}, "delivery"),
        ({"retries": None}, "retries"),
        ({"max_in_flight_requests_per_connection": None}, "max_in_flight"),
    ],
)
def test_what_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=said) as refused:
        read_options(given)
    assert isinstance(refused.value, ValueError)


def test_defaults_may_be_given() -> None:
    given = {"socket_options": [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)], "metric_reporters": []}
    assert read_options({**given, "kafka_client": None, "allow_auto_create_topics": True}).native is not None
