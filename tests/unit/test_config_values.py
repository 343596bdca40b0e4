"""Single values: what each option takes, as what, and how others are refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay import serializers
from forebay.config import Option, Secret, Type
from forebay.errors import ConfigError
from tests.fakes.names import LONE_SURROGATES, LONGEST, TOO_LONG

from .configs import OPTIONS, config, with_all


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
        ("metrics.recording.level", "DEBUG", "DEBUG"),
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
    assert with_all({"security.protocol": "ssl"})["security.protocol"] == "SSL"


def test_wrong_type_of_a_password_does_not_show_it() -> None:
    with pytest.raises(ConfigError) as caught:
        with_all({"ssl.key.password": b"hush-hush"})
    assert "hush" not in str(caught.value)
    assert "ssl.key.password" in str(caught.value)


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


WORDS = [name for name, option in OPTIONS.items() if option.type in (Type.STRING, Type.PASSWORD) and not option.choices]
LISTS = [name for name, option in OPTIONS.items() if option.type is Type.LIST]
PATHS = [name for name, option in OPTIONS.items() if option.path]
ON_THE_WIRE = [name for name, option in OPTIONS.items() if option.wire]


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("text", LONE_SURROGATES, ids=ascii)
def test_text_without_bytes_is_refused_at_construction(name: str, text: str) -> None:
    """Of each option, whatever its type: as text, in a list, and in a password that is not shown."""
    given = [text, [text], ["a", text]] if name in LISTS else [text]
    for value in given:
        if name in PATHS and "\udcff" in text:
            continue  # a byte of a file's name
        with pytest.raises(ConfigError, match=re.escape(name)) as caught:
            config({name: value})
        str(caught.value).encode()  # a message that can be printed


@pytest.mark.parametrize("name", PATHS)
def test_a_file_may_have_a_name_that_is_no_utf_8(name: str) -> None:
    OPTIONS[name].check_text("/etc/\udcff")
    OPTIONS[name].check_text(["/etc/\udcff"])


def test_options_of_the_protocol_have_its_limit() -> None:
    assert ON_THE_WIRE == ["client.id", "transactional.id"]
    for name in ON_THE_WIRE:
        for text in TOO_LONG:
            with pytest.raises(
                ConfigError, match=f"Option {name}: it has .* bytes in UTF-8, at most 32767 are allowed"
            ):
                config({name: text})
        for text in LONGEST:
            assert config({"client.id": "c", name: text})[name] == text


def test_a_client_id_that_is_made_has_the_limit_too() -> None:
    room = 32_767 - len("producer-")
    assert config({"transactional.id": "t" * room})["transactional.id"] == "t" * room
    for text in ("t" * (room + 1), "ü" * (room // 2 + 1), *LONGEST):
        with pytest.raises(ConfigError, match=r"transactional.id .*'producer-.*; give a client.id"):
            config({"transactional.id": text})


def test_other_text_may_be_long() -> None:
    for name in set(WORDS) - set(ON_THE_WIRE):
        OPTIONS[name].check_text(TOO_LONG[0])
