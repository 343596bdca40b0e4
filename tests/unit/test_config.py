"""config: values, both spellings, rules, refusals, secrets."""

from __future__ import annotations

import itertools
import logging
import pickle
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay import serializers
from forebay.config import (
    Feature,
    HostPort,
    Option,
    ProducerConfig,
    Secret,
    Type,
    next_client_id,
    parse_bootstrap,
    table,
)
from forebay.errors import ConfigError

EVERYTHING = frozenset(Feature)
OPTIONS = {option.name: option for option in table()}


def config(values: dict[str, Any] | None = None, **options: Any) -> ProducerConfig:
    return ProducerConfig({"bootstrap.servers": "localhost:9999", **(values or {})}, **options)


def with_all(values: dict[str, Any]) -> ProducerConfig:
    """With every feature, to test rules of what is refused in this version."""
    return ProducerConfig({"bootstrap.servers": "localhost:9999", **values}, features=EVERYTHING)


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
    "metrics.sample.window.ms": 30000, "metrics.recording.level": "INFO", "enable.metrics.push": False,
    "security.protocol": "PLAINTEXT", "ssl.protocol": "TLSv1.3", "ssl.enabled.protocols": ("TLSv1.2", "TLSv1.3"),
    "sasl.mechanism": "GSSAPI", "sasl.login.refresh.window.factor": 0.8, "sasl.jaas.config": None,
}  # fmt: skip


def test_defaults_are_kafka_4s() -> None:
    """I testDefaultMetadataRecoveryStrategy and the rest of section 3's defaults."""
    assert {name: config()[name] for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize(
    ("name", "lowest", "refused"),
    [
        ("retries", 0, -1),
        ("max.in.flight.requests.per.connection", 1, 0),
        ("delivery.timeout.ms", 30005, -1),
        ("request.timeout.ms", 0, -1),
        ("linger.ms", 0, -1),
        ("batch.size", 0, -1),
        ("buffer.memory", 0, -1),
        ("max.block.ms", 0, -1),
        ("max.request.size", 0, -1),
        ("retry.backoff.ms", 0, -1),
        ("retry.backoff.max.ms", 0, -1),
        ("reconnect.backoff.ms", 0, -1),
        ("reconnect.backoff.max.ms", 0, -1),
        ("metadata.max.age.ms", 0, -1),
        ("metadata.max.idle.ms", 5000, 4999),
        ("partitioner.availability.timeout.ms", 0, -1),
        ("send.buffer.bytes", -1, -2),
        ("receive.buffer.bytes", -1, -2),
        ("metrics.num.samples", 1, 0),
        ("metrics.sample.window.ms", 0, -1),
        ("compression.gzip.level", 1, 0),
        ("compression.gzip.level", -1, -2),
        ("compression.gzip.level", 9, 10),
        ("compression.lz4.level", 1, 0),
        ("compression.lz4.level", 17, 18),
        ("compression.zstd.level", -131072, -131073),
        ("compression.zstd.level", 22, 23),
    ],
)
def test_ranges(name: str, lowest: int, refused: int) -> None:
    """H testOsDefaultSocketBufferSizes, testInvalidSocketSendBufferSize, testInvalidSocketReceiveBufferSize.

    And the ends of every other range.
    """
    assert config({name: lowest})[name] == lowest
    with pytest.raises(ConfigError) as caught:
        config({name: refused})
    assert name in str(caught.value)
    assert str(refused) in str(caught.value)


def test_int_and_long_have_their_sizes() -> None:
    assert config(linger_ms=2**40)["linger.ms"] == 2**40
    with pytest.raises(ConfigError, match=r"batch\.size.*32 bits"):
        config(batch_size=2**31)
    with pytest.raises(ConfigError, match=r"buffer\.memory.*64 bits"):
        config(buffer_memory=2**63)


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("linger.ms", "5", 5),
        ("linger.ms", " 7 ", 7),
        ("enable.idempotence", "False", False),
        ("enable.idempotence", True, True),
        ("acks", 1, 1),
        ("acks", "0", 0),
        ("acks", "all", -1),
        ("acks", "-1", -1),
        ("acks", -1, -1),
        ("compression.type", "zstd", "zstd"),
        ("metadata.recovery.strategy", "REBOOTSTRAP", "rebootstrap"),
        ("connections.max.idle.ms", -1, -1),
        ("partitioner.class", "builtin", None),
        ("partitioner.class", "round_robin", "round_robin"),
        ("partitioner.class", "org.apache.kafka.clients.producer.RoundRobinPartitioner", "round_robin"),
        ("value.serializer", "org.apache.kafka.common.serialization.StringSerializer", serializers.StringSerializer),
        ("value.serializer", "forebay.serializers.JSONSerializer", serializers.JSONSerializer),
        ("value.serializer", "forebay.serializers:JSONSerializer", serializers.JSONSerializer),
        ("value.serializer", str.encode, str.encode),
        ("interceptor.classes", "collections.Counter,collections:OrderedDict", None),
    ],
)
def test_values(name: str, given: Any, value: Any) -> None:
    parsed = config({name: given})[name]
    if name == "interceptor.classes":
        assert [kind.__name__ for kind in parsed] == ["Counter", "OrderedDict"]
    else:
        assert parsed == value
        assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("linger.ms", "5.5"),
        ("linger.ms", 5.0),
        ("linger.ms", True),
        ("linger.ms", "1_000"),
        ("linger.ms", ""),
        ("linger.ms", b"5"),
        ("enable.idempotence", "yes"),
        ("enable.idempotence", 1),
        ("acks", 2),
        ("acks", "ALL"),
        ("acks", True),
        ("client.id", 5),
        ("compression.type", "abc"),
        ("metadata.recovery.strategy", "abc"),
        ("client.dns.lookup", "default"),
        ("security.protocol", "abc"),
        ("partitioner.class", 5),
        ("partitioner.class", "no.such.module.Class"),
        ("value.serializer", "Unqualified"),
        ("value.serializer", "forebay.serializers.NoSuch"),
        ("interceptor.classes", {"a"}),
        ("bootstrap.servers", 9092),
    ],
)
def test_wrong_values(name: str, given: Any) -> None:
    """I testInvalidCompressionType, testInvalidSecurityProtocol, testInvalidMetadataRecoveryStrategy."""
    with pytest.raises(ConfigError) as caught:
        config({name: given})
    assert name in str(caught.value)


def test_missing_class_names_it_and_has_the_reason_as_cause() -> None:
    """H testConstructorWithInvalidMetricReporterClass (here for a serializer)."""
    with pytest.raises(ConfigError, match=r"an\.invalid\.class cannot be found") as caught:
        config({"value.serializer": "an.invalid.class"})
    assert isinstance(caught.value.__cause__, ImportError)


def test_case_insensitive_security_protocol() -> None:
    """I testCaseInsensitiveSecurityProtocol."""
    assert with_all({"security.protocol": "sasl_ssl"})["security.protocol"] == "SASL_SSL"


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
        ("sasl.username", "here it is sasl.jaas.config"),
        ("ssl.ca.location", "here it is ssl.truststore.location"),
        ("ssl_cafile", "here it is ssl.truststore.location"),
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


IDEMPOTENCE = [
    # given, idempotence after it (None: refused), what else
    ({}, True, {"acks": -1}),
    ({"acks": "0", "enable.idempotence": False}, False, {"acks": 0}),
    ({"transactional.id": "t"}, True, {"acks": -1, "retries": 2147483647}),
    ({"acks": "all", "enable.idempotence": False}, False, {"acks": -1}),
    ({"acks": "0"}, False, {"acks": 0}),
    ({"acks": "1"}, False, {"acks": 1}),
    ({"acks": "0", "enable.idempotence": False, "transactional.id": "t"}, None, {}),
    ({"acks": "1", "enable.idempotence": True}, None, {}),
    ({"acks": "0", "transactional.id": "t"}, None, {}),
    ({"retries": 0, "enable.idempotence": False}, False, {"retries": 0}),
    ({"retries": 0}, False, {"retries": 0}),
    ({"retries": 0, "enable.idempotence": False, "transactional.id": "t"}, None, {}),
    ({"retries": 0, "enable.idempotence": True}, None, {}),
    ({"retries": 0, "transactional.id": "t"}, None, {}),
    ({"max.in.flight.requests.per.connection": 6, "enable.idempotence": False}, False, {}),
    ({"max.in.flight.requests.per.connection": 6}, False, {"max.in.flight.requests.per.connection": 6}),
    ({"max.in.flight.requests.per.connection": 5, "enable.idempotence": False, "transactional.id": "t"}, None, {}),
    ({"max.in.flight.requests.per.connection": 6, "enable.idempotence": True}, None, {}),
    ({"max.in.flight.requests.per.connection": 6, "transactional.id": "t"}, None, {}),
]


@pytest.mark.parametrize(("values", "idempotent", "more"), IDEMPOTENCE)
def test_idempotence(values: dict[str, Any], idempotent: bool | None, more: dict[str, Any]) -> None:
    """H testOverwriteAcksAndRetriesForIdempotentProducers, testAcksAndIdempotenceForIdempotentProducers,
    testRetriesAndIdempotenceForIdempotentProducers, testInflightRequestsAndIdempotenceForIdempotentProducers.
    """
    if idempotent is None:
        with pytest.raises(ConfigError, match="idempotence"):
            with_all(values)
        return
    made = with_all(values)
    assert made["enable.idempotence"] is idempotent
    assert {name: made[name] for name in more} == more


def test_idempotence_switched_off_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="forebay"):
        config(acks=1)
    assert [record.getMessage() for record in caplog.records] == [
        "Idempotence is switched off, since acks is 1 and would have to be all"
    ]


@pytest.mark.parametrize(
    ("values", "delivery"),
    [
        ({"delivery.timeout.ms": 1000, "linger.ms": 1000, "request.timeout.ms": 1}, None),
        ({"delivery.timeout.ms": 1000, "linger.ms": 999, "request.timeout.ms": 1}, 1000),
        ({"linger.ms": 100000, "request.timeout.ms": 30000}, 130000),
        ({"request.timeout.ms": 2**31 - 1, "linger.ms": 2**40}, 2**31 - 1),
        ({"linger.ms": 2**40, "delivery.timeout.ms": 2**31 - 1}, 2**31 - 1),
    ],
)
def test_delivery_timeout(values: dict[str, Any], delivery: int | None) -> None:
    """H testDeliveryTimeoutAndLingerMsConfig, and the silent raise where it was not given."""
    if delivery is None:
        with pytest.raises(ConfigError, match=r"delivery\.timeout\.ms is 1000: must be at least .*1001"):
            config(values)
        return
    made = config(values)
    assert made["delivery.timeout.ms"] == delivery
    assert bool(made.notes) == ("delivery.timeout.ms" not in values)


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        ({}, 1000),
        ({"reconnect.backoff.ms": 200}, 200),
        ({"reconnect.backoff.ms": 5000}, 5000),
        ({"reconnect.backoff.ms": 200, "reconnect.backoff.max.ms": 900}, 900),
        ({"reconnect.backoff.max.ms": 900}, 900),
    ],
)
def test_reconnect_backoff_max_follows(values: dict[str, int], limit: int) -> None:
    assert config(values)["reconnect.backoff.max.ms"] == limit


def test_retry_backoff_above_its_maximum_is_said() -> None:
    made = config(retry_backoff_ms=5000)
    assert [note.text for note in made.notes if "retry.backoff.ms (5000) is above" in note.text]
    assert (made["retry.backoff.ms"], made["retry.backoff.max.ms"]) == (5000, 1000)


def test_sasl_needs_a_mechanism() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.mechanism is empty"):
        with_all({"security.protocol": "SASL_SSL", "sasl.mechanism": ""})


@pytest.mark.parametrize(
    ("name", "value", "lack"),
    [
        ("security.protocol", "SSL", "TLS"),
        ("security.protocol", "sasl_plaintext", "SASL"),
        ("security.protocol", "SASL_SSL", "TLS and no SASL"),
        ("transactional.id", "t", "transactions"),
        ("transaction.timeout.ms", 1000, "transactions"),
        ("enable.metrics.push", True, "telemetry"),
        ("metric.reporters", "a.B", "reporters"),
        ("security.providers", "a.B", "providers"),
        ("ssl.truststore.location", "/a", "TLS"),
        ("ssl.keystore.password", "hush-hush", "TLS"),
        ("sasl.jaas.config", "hush-hush", "SASL"),
    ],
)
def test_what_is_missing_is_refused(name: str, value: Any, lack: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config({name: value})
    assert f"{name}" in str(caught.value)
    assert "not available in this version" in str(caught.value)
    assert lack in str(caught.value)
    assert "hush" not in "".join(traceback.format_exception(caught.value))


def test_inert_defaults_of_what_is_missing_are_accepted() -> None:
    inert = {option.name: option.default for option in table() if option.feature is not None}
    made = config({name: value for name, value in inert.items() if value is not None})
    assert made["security.protocol"] == "PLAINTEXT"
    assert made.explicit("transaction.timeout.ms")


def test_secrets_are_never_shown() -> None:
    made = with_all(
        {"sasl.jaas.config": "hush-hush", "ssl.key.password": Secret("hush-hush"), "security.protocol": "SASL_SSL"}
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
    assert made["sasl.jaas.config"].reveal() == "hush-hush"
    assert pickle.loads(pickle.dumps(made["sasl.jaas.config"])) == Secret("hush-hush")
    assert Secret("a") != Secret("b")
    assert not hasattr(made["sasl.jaas.config"], "__dict__")


def test_wrong_type_of_a_password_does_not_show_it() -> None:
    with pytest.raises(ConfigError) as caught:
        with_all({"ssl.key.password": b"hush-hush"})
    assert "hush" not in str(caught.value)
    assert "ssl.key.password" in str(caught.value)


def test_immutable() -> None:
    made = config()
    with pytest.raises(AttributeError, match="does not change"):
        made.linger_ms = 5
    with pytest.raises(TypeError):
        made["linger.ms"] = 5  # type: ignore[index]
    made.originals()["linger.ms"] = 99
    assert made["linger.ms"] == 5


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


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("a:1", [("a", 1)]),
        (" a:1 , b:2,", [("a", 1), ("b", 2)]),
        (["a:1", "b:2,c:3"], [("a", 1), ("b", 2), ("c", 3)]),
        (["a:1", "a:1"], [("a", 1)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("[fe80::1%eth0]:9092", [("fe80::1%eth0", 9092)]),
        ("127.0.0.1:65535", [("127.0.0.1", 65535)]),
        ("PLAINTEXT://a_b.c-d:1", [("a_b.c-d", 1)]),
        ("SASL_SSL://[::1]:1", [("::1", 1)]),
    ],
)
def test_bootstrap(given: Any, wanted: list[tuple[str, int]]) -> None:
    assert list(ProducerConfig(bootstrap_servers=given).bootstrap) == wanted


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("127.0.0.1", "port is missing"),
        ("a:", "port '' is not a number"),
        ("a:70000", "'70000' is not a number from 1 to 65535"),
        ("a:0", "1 to 65535"),
        ("a:x", "'x'"),
        ("a:-1", "'-1'"),
        ("a:²", "from 1 to 65535"),
        (":9092", "host is missing"),
        ("::1:9092", "in brackets"),
        ("[::1]", "port is missing"),
        ("[a]:1", "brackets are for IPv6"),
        ("http://a:1", "http:// is not one of"),
        ("a b:1", "has spaces"),
        ("a:1/path", "'1/path'"),
    ],
)
def test_wrong_bootstrap(entry: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ProducerConfig(bootstrap_servers=["fine:1", entry])
    assert repr(entry) in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize("values", [{}, {"bootstrap.servers": ""}, {"bootstrap.servers": []}])
def test_no_bootstrap_server(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is empty"):
        ProducerConfig(values)
    with pytest.raises(ConfigError, match="not a string"):
        parse_bootstrap([5])


@given(st.sampled_from(["a", "x.y-z", "10.0.0.1", "::1", "fe80::2%lo"]), st.integers(1, 65535))
def test_host_port_text_round_trips(host: str, port: int) -> None:
    assert parse_bootstrap([str(HostPort(host, port))]) == (HostPort(host, port),)


@given(st.text(max_size=20))
def test_any_bootstrap_text_is_parsed_or_refused_by_name(text: str) -> None:
    try:
        [found] = parse_bootstrap([text])
    except ConfigError as error:
        assert repr(text) in str(error)
    else:
        assert found.host
        assert 1 <= found.port <= 65535


@given(
    st.sampled_from(sorted(OPTIONS)),
    st.one_of(st.integers(), st.text(max_size=8), st.booleans(), st.floats(), st.none()),
)
def test_any_value_is_parsed_or_refused_by_name(name: str, value: Any) -> None:
    option: Option = OPTIONS[name]
    try:
        parsed = option.parse(value)
    except ConfigError as error:
        assert name in str(error)
    else:
        expected = {Type.INT: int, Type.LONG: int, Type.BOOLEAN: bool, Type.DOUBLE: float, Type.PASSWORD: Secret}
        if option.type in expected:
            assert type(parsed) is expected[option.type]


def test_the_table_is_sound() -> None:
    assert len(OPTIONS) == len(table())
    for option in table():
        assert option.documentation.endswith(".")
        if option.default is not None and option.type not in (Type.CLASS, Type.LIST) and option.name != "client.id":
            assert option.parse(option.default) == option.default


def test_custom_partitioner_makes_the_builtins_options_idle() -> None:
    made = config({"partitioner.class": "round_robin", "partitioner.ignore.keys": True})
    assert [note.text for note in made.notes] == [
        "partitioner.ignore.keys has no effect: it is for the built-in partitioner"
    ]


def test_describe_marks_what_was_given() -> None:
    lines = config(linger_ms="7").describe().splitlines()
    assert "linger.ms = 7 (given)" in lines
    assert "batch.size = 16384" in lines
    assert len(lines) == len(table())
