"""A producer's configuration as a whole: defaults, spellings, refusals, secrets, copies."""

from __future__ import annotations

import itertools
import logging
import pickle
from typing import Any

import pytest

from forebay import serializers
from forebay.config import ProducerConfig, Secret, Type, next_client_id, table
from forebay.errors import ConfigError

from .configs import OPTIONS, config, with_all

DEFAULTS = {
    "acks": -1, "enable.idempotence": True, "retries": 2147483647, "max.in.flight.requests.per.connection": 5,
    "delivery.timeout.ms": 120000, "request.timeout.ms": 30000, "linger.ms": 5, "batch.size": 16384,
    "buffer.memory": 33554432, "max.block.ms": 60000, "max.request.size": 1048576, "compression.type": "none",
    "compression.gzip.level": -1, "compression.lz4.level": 9, "compression.zstd.level": 3, "partitioner.class": None,
    "partitioner.ignore.keys": False, "partitioner.adaptive.partitioning.enable": True,
    "partitioner.availability.timeout.ms": 0, "interceptor.classes": (), "client.id": "",
    "client.dns.lookup": "use_all_dns_ips", "transactional.id": None, "transaction.timeout.ms": 60000,
    "retry.backoff.ms": 100, "retry.backoff.max.ms": 1000, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 1000,
    "metadata.max.age.ms": 300000, "metadata.max.idle.ms": 300000, "metadata.recovery.strategy": "rebootstrap",
    "metadata.recovery.rebootstrap.trigger.ms": 300000, "send.buffer.bytes": 131072, "receive.buffer.bytes": 32768,
    "socket.connection.setup.timeout.ms": 10000, "socket.connection.setup.timeout.max.ms": 30000,
    "connections.max.idle.ms": 540000, "metric.reporters": (), "metrics.num.samples": 2,
    "metrics.sample.window.ms": 30000, "metrics.recording.level": "INFO", "enable.metrics.push": True,
    "security.protocol": "PLAINTEXT", "ssl.protocol": "TLSv1.3", "ssl.enabled.protocols": ("TLSv1.2", "TLSv1.3"),
    "sasl.mechanism": "GSSAPI", "sasl.login.refresh.window.factor": 0.8, "sasl.jaas.config": None,
}  # fmt: skip


def test_defaults_are_kafka_4s() -> None:
    """I testDefaultMetadataRecoveryStrategy and the rest of section 3's defaults."""
    assert {name: config()[name] for name in DEFAULTS} == DEFAULTS


def test_both_spellings_and_keyword() -> None:
    assert config(linger_ms=7)["linger.ms"] == 7
    assert config({"linger_ms": 7})["linger_ms"] == 7
    assert config({"linger.ms": 7}).get("linger.ms") == 7
    assert "linger_ms" in config()


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_every_option_has_a_python_spelling(name: str) -> None:
    python = name.replace(".", "_")
    assert python.isidentifier()
    assert python.replace("_", ".") == name


def test_given_twice() -> None:
    with pytest.raises(ConfigError, match=r"linger\.ms is given twice: as 'linger\.ms' and as 'linger_ms'"):
        config({"linger.ms": 5}, linger_ms=5)


def test_none_is_not_given() -> None:
    made = config(linger_ms=None, client_id=None)
    assert made["linger.ms"] == 5
    assert not made.explicit("linger.ms")
    assert not made.explicit("client_id")


def test_explicit_even_with_the_default_value() -> None:
    assert config(linger_ms=5).explicit("linger.ms")
    assert config(linger_ms=5).explicit("linger_ms")


def test_key_that_is_no_string() -> None:
    """H testConstructorWithNotStringKey."""
    with pytest.raises(ConfigError, match="42"):
        ProducerConfig({42: "not a string key", "bootstrap.servers": "a:1"})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("linger.mss", "did you mean 'linger.ms'?"),
        ("Linger.ms", "did you mean 'linger.ms'?"),
        ("batchsize", "did you mean 'batch.size'?"),
        ("kafka.linger.ms", "write it without 'kafka', 'linger.ms'"),
        ("queue.buffering.max.ms", "here it is linger.ms"),
        ("queue.buffering.max.kbytes", "here it is buffer.memory (in bytes: times 1024)"),
        ("message.timeout.ms", "here it is delivery.timeout.ms"),
        ("metadata.broker.list", "here it is bootstrap.servers"),
        ("compression.codec", "here it is compression.type"),
        ("request.required.acks", "here it is acks"),
        ("message.send.max.retries", "here it is retries"),
        ("message.max.bytes", "here it is max.request.size"),
        ("group.id", "it is a consumer's option"),
        ("api_version", "versions are negotiated"),
        ("xyzzy", "'forebay config' lists all options"),
    ],
)
def test_unknown_key(key: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config({key: "value-that-may-be-secret"})
    assert repr(key) in str(caught.value)
    assert hint in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "lack"),
    [
        ("metric.reporters", "a.B", "reporters"),
    ],
)
def test_what_is_missing_is_refused(name: str, value: Any, lack: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config({name: value})
    assert f"{name}" in str(caught.value)
    assert "not available in this version" in str(caught.value)
    assert lack in str(caught.value)


def test_inert_defaults_of_what_is_missing_are_accepted() -> None:
    inert = {option.name: option.default for option in table() if option.feature is not None}
    made = config({name: value for name, value in inert.items() if value is not None})
    assert made["security.protocol"] == "PLAINTEXT"
    assert made.explicit("transaction.timeout.ms")


def test_secrets_are_never_shown() -> None:
    jaas = 'a.PlainLoginModule required username="u" password="hush-hush";'
    made = with_all(
        {
            "sasl.jaas.config": jaas,
            "ssl.key.password": Secret("hush-hush"),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
        }
    )
    shown = [
        repr(made),
        str(made),
        made.describe(),
        repr(made.originals()),
        repr(dict(made)),
        f"{made['sasl.jaas.config']}",
    ]
    assert not any("hush" in text for text in shown)
    assert "[hidden]" in repr(made)
    assert made["ssl.key.password"].reveal() == "hush-hush"
    assert pickle.loads(pickle.dumps(made["sasl.jaas.config"])) == Secret(jaas)
    assert Secret("a") != Secret("b")
    assert not hasattr(made["sasl.jaas.config"], "__dict__")


def test_immutable() -> None:
    made = config()
    with pytest.raises(AttributeError, match="does not change"):
        made.linger_ms = 5
    with pytest.raises(TypeError):
        made["linger.ms"] = 5  # type: ignore[index]
    made.originals()["linger.ms"] = 99
    assert made["linger.ms"] == 5


def test_items_and_values_are_those_of_single_look_ups() -> None:
    made = config(linger_ms=7)
    assert dict(made.items()) == {name: made[name] for name in made} == {**made}
    assert list(made.values()) == [made[name] for name in made]
    assert made["linger_ms"] == made["linger.ms"] == 7
    with pytest.raises(KeyError, match=r"linger\.mss"):
        made["linger_mss"]


def test_replace_and_copy() -> None:
    made = config(linger_ms=7).replace(client_id="me")
    assert (made["linger.ms"], made["client.id"]) == (7, "me")
    assert made.replace({"linger.ms": 8})["linger.ms"] == 8
    assert ProducerConfig(made, acks=1)["client.id"] == "me"
    with pytest.raises(ConfigError, match="twice"):
        ProducerConfig(made, client_id="you")


def test_pickle_is_the_same_and_silent(caplog: pytest.LogCaptureFixture) -> None:
    made = config(acks=1, value_serializer=serializers.StringSerializer)
    data = pickle.dumps(made)
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="forebay"):
        twin = pickle.loads(data)
    assert not caplog.records
    assert twin == made
    assert dict(twin) == dict(made)
    assert twin.originals() == made.originals()
    assert twin.notes == made.notes


def test_client_id() -> None:
    """H testOverwriteAcksAndRetriesForIdempotentProducers: the generated client.id."""
    counter = itertools.count(1)
    assert next_client_id(config(), counter) == "producer-1"
    assert next_client_id(config(), counter) == "producer-2"
    assert next_client_id(config(client_id="me"), counter) == "me"
    assert next_client_id(config(client_id=""), counter) == ""
    assert next_client_id(with_all({"transactional.id": "transactionalId"}), counter) == "producer-transactionalId"
    assert next(counter) == 3


def test_the_table_is_sound() -> None:
    assert len(OPTIONS) == len(table())
    for option in table():
        assert option.documentation.endswith(".")
        if option.default is not None and option.type not in (Type.CLASS, Type.LIST) and option.name != "client.id":
            assert option.parse(option.default) == option.default


def test_describe_marks_what_was_given() -> None:
    lines = config(linger_ms="7").describe().splitlines()
    assert "linger.ms = 7 (given)" in lines
    assert "batch.size = 16384" in lines
    assert len(lines) == len(table())
