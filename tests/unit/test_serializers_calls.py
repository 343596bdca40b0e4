"""How serializers of other clients go in, by the shape of their call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import forebay
from forebay.errors import ConfigError, SerializationError
from forebay.serializers._calls import as_serializer
from tests.fakes.world import World

SCHEMA = '{"type": "record", "name": "Flight", "fields": [{"name": "id", "type": "long"}]}'


class Registered:
    """Shaped as confluent's: called with the object and the context."""

    def __init__(self) -> None:
        self.contexts: list[Any] = []

    def __call__(self, obj: Any, ctx: Any = None) -> bytes:
        self.contexts.append(ctx)
        ctx.headers.append(("schema", b"1"))
        return repr(obj).encode()


class Awaited:
    """Shaped as confluent's AsyncAvroSerializer."""

    async def __call__(self, obj: Any, ctx: Any = None) -> bytes:
        return b""


def test_one_with_a_context_gets_topic_field_and_headers() -> None:
    given = Registered()
    bound = as_serializer(given, is_key=True, configs={})
    headers: list[Any] = []
    assert bound.serialize("flights", headers, 7) == b"7"
    (context,) = given.contexts
    assert (context.topic, context.field, context.headers) == ("flights", "key", headers)
    assert headers == [("schema", b"1")]
    assert bound.serialize("flights", headers, None) is None


def test_what_it_raises_says_which_serializer_and_topic() -> None:
    def refusing(obj: Any, ctx: Any) -> bytes:
        raise ValueError("no such subject")

    with pytest.raises(SerializationError, match="serializer .*refusing failed on int for topic t: .*no such"):
        as_serializer(refusing, is_key=False, configs={}).serialize("t", [], 1)


def test_a_coroutine_is_refused() -> None:
    with pytest.raises(ConfigError, match="Awaited is a coroutine.*without Async"):
        as_serializer(Awaited(), is_key=False, configs={})


def test_a_callable_of_one_argument_stays_one() -> None:
    def two(value: Any, indent: int = 0) -> bytes:
        return b"%d" % indent

    assert as_serializer(two, is_key=False, configs={}).serialize("t", [], 1) == b"0"
    assert as_serializer(bytes.hex, is_key=False, configs={}).serialize("t", [], None) is None


@pytest.mark.parametrize(
    ("name", "value", "expected"), [("json", {"a": [1, "ä"]}, '{"a":[1,"ä"]}'.encode()), ("string", "ä", "ä".encode())]
)
def test_by_name(name: str, value: Any, expected: bytes) -> None:
    world = World(value_serializer=name, key_serializer=name)
    sent = world.producer.send("test", value, value, partition=0)
    world.settle()
    assert sent.result(0).serialized_value_size == sent.result(0).serialized_key_size == len(expected)


def test_another_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="'jason' for option value.serializer: must be .*json.*string"):
        World(value_serializer="jason")


def test_json_says_what_it_cannot_encode() -> None:
    world = World(value_serializer="json")
    with pytest.raises(SerializationError, match="JSONSerializer cannot encode dict: .*set is not JSON"):
        world.producer.send("test", {"a": {1}})


def test_avro_of_confluent_as_it_is() -> None:
    avro = pytest.importorskip("confluent_kafka.schema_registry.avro")
    registry = pytest.importorskip("confluent_kafka.schema_registry")
    client = registry.SchemaRegistryClient.new_client({"url": "mock://forebay"})
    bound = as_serializer(avro.AvroSerializer(client, SCHEMA), is_key=False, configs={})
    assert bound.serialize("flights", [], {"id": 7}) == b"\x00\x00\x00\x00\x01\x0e"
    assert client.get_subjects() == ["flights-value"]


def test_json_schema_of_confluent_as_it_is() -> None:
    schemas = pytest.importorskip("confluent_kafka.schema_registry.json_schema")
    registry = pytest.importorskip("confluent_kafka.schema_registry")
    client = registry.SchemaRegistryClient.new_client({"url": "mock://forebay-json"})
    given = schemas.JSONSerializer('{"title": "Flight", "type": "object"}', client)
    framed = as_serializer(given, is_key=True, configs={}).serialize("flights", [], {"id": 7})
    assert framed is not None and framed[:5] == b"\x00\x00\x00\x00\x01"
    assert json.loads(framed[5:]) == {"id": 7}
    assert client.get_subjects() == ["flights-key"]


def test_protobuf_of_confluent_as_it_is() -> None:
    protobuf = pytest.importorskip("confluent_kafka.schema_registry.protobuf")
    registry = pytest.importorskip("confluent_kafka.schema_registry")
    from google.protobuf.wrappers_pb2 import Int64Value

    client = registry.SchemaRegistryClient.new_client({"url": "mock://forebay-protobuf"})
    given = protobuf.ProtobufSerializer(Int64Value, client, {"use.deprecated.format": False})
    framed = as_serializer(given, is_key=False, configs={}).serialize("flights", [], Int64Value(value=7))
    assert framed is not None and framed[:5] == b"\x00\x00\x00\x00\x01"
    assert framed.endswith(Int64Value(value=7).SerializeToString())


def test_nothing_of_confluent_is_imported_for_others() -> None:
    program = (
        "import sys; from forebay.serializers._calls import as_serializer\n"
        "as_serializer(lambda obj, ctx: b'', is_key=False, configs={}).serialize('t', [], 1)\n"
        "print([name for name in sys.modules if name.startswith('confluent')])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(forebay.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
