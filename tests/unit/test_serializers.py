"""serializers: bytes as Java's, adapters, and errors that say what and where."""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay import serializers as s
from forebay.errors import ConfigError, KafkaError, KafkaTimeoutError, SerializationError, UnserializableTypeError
from forebay.serializers._calls import BoundSerializer, as_serializer

SOME_UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")


def encode(serializer: Any, data: Any) -> bytes | None:
    result = serializer.serialize("topic", [], data)
    assert result is None or type(result) is bytes
    return result


@pytest.mark.parametrize(
    ("serializer", "data", "expected"),
    [
        (s.ByteArraySerializer(), b"\x00\xff", b"\x00\xff"),
        (s.ByteBufferSerializer(), memoryview(b"0123456789")[2:8:2], b"246"),
        (s.BytesSerializer(), bytearray(b"ab"), b"ab"),
        (s.StringSerializer(), "aé€😀", b"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
        (s.StringSerializer("UTF-16"), "aé", b"\xfe\xff\x00a\x00\xe9"),
        (s.StringSerializer("latin-1"), "é", b"\xe9"),
        (s.ShortSerializer(), -2, b"\xff\xfe"),
        (s.IntegerSerializer(), 1, b"\x00\x00\x00\x01"),
        (s.LongSerializer(), -(2**63), b"\x80" + bytes(7)),
        (s.FloatSerializer(), 1.5, b"\x3f\xc0\x00\x00"),
        (s.DoubleSerializer(), 1.5, b"\x3f\xf8" + bytes(6)),
        (s.DoubleSerializer(), 2, b"\x40" + bytes(7)),
        (s.BooleanSerializer(), True, b"\x01"),
        (s.BooleanSerializer(), False, b"\x00"),
        (s.UUIDSerializer(), SOME_UUID, b"00112233-4455-6677-8899-aabbccddeeff"),
        (s.JSONSerializer(), {"a": [1, None, "é"]}, '{"a":[1,null,"é"]}'.encode()),
        (s.JSONSerializer(), True, b"true"),
        (s.JSONSerializer(sort_keys=True, separators=(", ", ": ")), {"b": 1, "a": 2}, b'{"a": 2, "b": 1}'),
    ],
)
def test_bytes(serializer: Any, data: Any, expected: bytes) -> None:
    """I allSerdesShouldRoundtripInput: the bytes Java's deserializers read."""
    assert encode(serializer, data) == expected


@pytest.mark.parametrize("kind", [*s.BUILT_IN.values(), s.JSONSerializer])
def test_null_stays_null(kind: Any) -> None:
    """I allSerdesShouldSupportNull."""
    assert encode(kind(), None) is None


@pytest.mark.parametrize(
    ("serializer", "data"),
    [
        (s.ByteArraySerializer(), "text"),
        (s.StringSerializer(), b"bytes"),
        (s.ShortSerializer(), 1.0),
        (s.IntegerSerializer(), True),
        (s.FloatSerializer(), "1"),
        (s.BooleanSerializer(), 1),
        (s.UUIDSerializer(), "00112233-4455-6677-8899-aabbccddeeff"),
        (s.VoidSerializer(), b""),
        (s.ListSerializer(s.ShortSerializer()), 5),
    ],
)
def test_wrong_type(serializer: Any, data: Any) -> None:
    with pytest.raises(UnserializableTypeError, match=f"{type(serializer).__name__} takes .*not {type(data).__name__}"):
        encode(serializer, data)


@pytest.mark.parametrize(
    ("serializer", "data"),
    [
        (s.ShortSerializer(), 2**15),
        (s.IntegerSerializer(), -(2**31) - 1),
        (s.LongSerializer(), 2**63),
        (s.FloatSerializer(), 1e300),
        (s.StringSerializer("ascii"), "é"),
        (s.StringSerializer(), "\ud800"),
        (s.JSONSerializer(), {1, 2}),
        (s.ListSerializer(s.ShortSerializer()), [1, 2**15]),
    ],
)
def test_out_of_range(serializer: Any, data: Any) -> None:
    with pytest.raises(SerializationError, match="cannot encode"):
        encode(serializer, data)


@pytest.mark.parametrize("key", ["key.serializer.encoding", "serializer.encoding"])
def test_encoding_is_configured(key: str) -> None:
    """I stringSerdeShouldSupportDifferentEncodings."""
    serializer = s.StringSerializer()
    serializer.configure({key: "UTF-16"}, True)
    assert encode(serializer, "a") == b"\xfe\xff\x00a"
    serializer = s.StringSerializer()
    serializer.configure({"value.serializer.encoding": "UTF-16"}, True)
    assert encode(serializer, "a") == b"a"


@pytest.mark.parametrize("encoding", ["no-such-encoding", "base64"])
def test_unknown_encoding(encoding: str) -> None:
    """I stringSerdeShouldSupportDifferentEncodings: unknown encoding."""
    with pytest.raises(SerializationError, match=encoding):
        s.StringSerializer().configure({"serializer.encoding": encoding}, False)


def test_float_nan_and_infinities() -> None:
    """I Float NaN bit patterns: the quiet NaN and the infinities have Java's bits."""
    assert encode(s.FloatSerializer(), math.inf) == b"\x7f\x80\x00\x00"
    assert encode(s.FloatSerializer(), math.nan) == b"\x7f\xc0\x00\x00"
    payload = struct.unpack(">d", bytes.fromhex("7ff8000000012345"))[0]
    assert encode(s.DoubleSerializer(), payload) == bytes.fromhex("7ff8000000012345")


@pytest.mark.parametrize(
    ("inner", "items", "size"),
    [
        (s.IntegerSerializer(), [1, 2, 3], 21),
        (s.FloatSerializer(), [1.0, 2.0, 3.0], 21),
        (s.ShortSerializer(), [1, 2, 3], 15),
        (s.LongSerializer(), [1, 2, 3], 33),
        (s.DoubleSerializer(), [1.0, 2.0, 3.0], 33),
        (s.UUIDSerializer(), [SOME_UUID] * 3, 117),
    ],
)
def test_list_sizes(inner: Any, items: list[Any], size: int) -> None:
    """I List serializer lengths for 3-element lists."""
    assert len(encode(s.ListSerializer(inner), items) or b"") == size


def test_list_bytes() -> None:
    """I List serializer: null indexes for fixed sizes, lengths for others, empty lists."""
    fixed = encode(s.ListSerializer(s.ShortSerializer()), [5, None, 7, None])
    assert fixed == b"\x00" + struct.pack(">iii", 2, 1, 3) + struct.pack(">i", 4) + struct.pack(">hh", 5, 7)
    free = encode(s.ListSerializer(s.StringSerializer), ("ab", None, ""))
    assert free == b"\x01" + struct.pack(">ii", 3, 2) + b"ab" + struct.pack(">ii", -1, 0)
    assert encode(s.ListSerializer(s.ShortSerializer()), []) == b"\x00" + bytes(8)


def test_list_configuration() -> None:
    """I missing inner class, and already initialised."""
    with pytest.raises(ConfigError, match=r"default\.list\.key\.serde\.inner"):
        s.ListSerializer().configure({}, True)
    with pytest.raises(ConfigError, match="constructor"):
        s.ListSerializer(s.ShortSerializer()).configure({}, True)
    configured = s.ListSerializer()
    configured.configure(
        {"default.list.value.serde.inner": s.StringSerializer, "value.serializer.encoding": "latin-1"}, False
    )
    assert (encode(configured, ["é"]) or b"").endswith(b"\xe9")
    with pytest.raises(SerializationError, match="no inner"):
        encode(s.ListSerializer(), [1])


@given(st.lists(st.one_of(st.none(), st.binary(max_size=6)), max_size=6))
def test_list_of_bytes_reads_back(items: list[bytes | None]) -> None:
    data = encode(s.ListSerializer(s.ByteArraySerializer()), items) or b""
    assert data[0] == 1
    (count,) = struct.unpack_from(">i", data, 1)
    found: list[bytes | None] = []
    at = 5
    for _ in range(count):
        (size,) = struct.unpack_from(">i", data, at)
        found.append(None if size < 0 else data[at + 4 : at + 4 + size])
        at += 4 + max(size, 0)
    assert found == items
    assert at == len(data)


class Recorder:
    """A serializer of the Java form that notes its calls."""

    made: list[Recorder] = []

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        self.calls.append(("configure", configs["client.id"], is_key))

    def serialize(self, topic: str, headers: Any, data: Any) -> bytes | None:
        headers.append(("seen", b"1"))
        self.calls.append((topic, data))
        return b"x" if data is not None else None

    def close(self) -> None:
        self.calls.append("close")


class TwoArguments:
    """The Java form without headers."""

    def serialize(self, topic: str, data: Any) -> bytes:
        return f"{topic}:{data}".encode()


class Optional:
    """Data is not always needed."""

    def serialize(self, topic: str, data: Any = None) -> bytes:
        return f"{topic}:{data}".encode()


def bind(given: Any, is_key: bool = False) -> BoundSerializer:
    return as_serializer(given, is_key=is_key, configs={"client.id": "me"})


def test_an_instance_is_used_as_it_is_and_closed_once() -> None:
    """H testSerializerClose: not configured, closed exactly once."""
    recorder = Recorder()
    bound = bind(recorder)
    headers: list[Any] = []
    assert bound.serialize("t", headers, 5) == b"x"
    assert bound.serialize("t", headers, None) is None
    assert headers == [("seen", b"1")] * 2
    bound.close()
    bound.close()
    assert recorder.calls == [("t", 5), ("t", None), "close"]


def test_a_class_is_made_and_configured() -> None:
    """H configurableObjectsShouldSeeGeneratedClientId, the serializers' part."""
    seen: list[Any] = []

    class Noting(Recorder):
        def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
            seen.append((configs["client.id"], is_key))

    assert bind(Noting, is_key=True).serialize("t", [], 1) == b"x"
    assert seen == [("me", True)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (TwoArguments(), b"t:5"),
        (TwoArguments, b"t:5"),
        (Optional(), b"t:5"),
        (lambda value: str(value).encode(), b"5"),
        (lambda value: bytearray(b"ab"), b"ab"),
        (lambda value: memoryview(b"abcd")[::2], b"ac"),
        (lambda value: None, None),
    ],
)
def test_accepted_forms(given: Any, expected: bytes | None) -> None:
    result = bind(given).serialize("t", [], 5)
    assert result == expected
    assert result is None or type(result) is bytes


def test_none_never_reaches_a_plain_callable() -> None:
    assert bind(str.encode).serialize("t", [], None) is None


@pytest.mark.parametrize("given", [5, object(), type("OneArgument", (), {"serialize": lambda self: b""})()])
def test_refused_forms(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"value\.serializer"):
        bind(given)


def test_without_a_serializer_bytes_pass() -> None:
    bound = bind(None)
    assert bound.passes_bytes
    data = b"abc"
    assert bound.serialize("t", [], data) is data
    assert bound.serialize("t", [], None) is None
    assert bound.serialize("t", [], bytearray(b"ab")) == b"ab"
    assert bound.serialize("t", [], memoryview(b"abcd")[::2]) == b"ac"
    bound.close()


@pytest.mark.parametrize(
    ("data", "is_key", "message"),
    [
        ("text", False, "The value for topic t is str, .* call .encode.. on it, or set value_serializer"),
        ({"a": 1}, True, "The key for topic t is dict, .* or set key_serializer"),
        (5, False, "The value for topic t is int"),
    ],
)
def test_without_a_serializer_the_rest_is_a_type_error(data: Any, is_key: bool, message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        bind(None, is_key).serialize("t", [], data)
    assert isinstance(caught.value, SerializationError)


def test_a_failing_serializer() -> None:
    def fail(value: Any) -> bytes:
        raise ZeroDivisionError("oops")

    with pytest.raises(
        SerializationError, match=r"value serializer .*fail failed on int for topic t: ZeroDivisionError: oops"
    ) as caught:
        bind(fail).serialize("t", [], 5)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_our_own_errors_pass_with_their_place() -> None:
    cause = ValueError("deep")

    def fail(value: Any) -> bytes:
        raise KafkaTimeoutError("registry") from cause

    with pytest.raises(KafkaError) as caught:
        bind(fail, is_key=True).serialize("t", [], 5)
    assert type(caught.value) is KafkaTimeoutError
    assert caught.value.context == {"topic": "t", "part": "key"}
    assert caught.value.__cause__ is cause


def test_a_serializer_that_returns_something_else() -> None:
    with pytest.raises(
        SerializationError, match="key serializer .* returned str for topic t; it must return bytes or None"
    ):
        bind(lambda value: "text", is_key=True).serialize("t", [], 5)


def test_built_ins_fulfil_the_protocol() -> None:
    assert all(isinstance(kind(), s.Serializer) for kind in s.BUILT_IN.values())
    assert set(s.BUILT_IN) == {kind.__name__ for kind in s.BUILT_IN.values()}
