"""SerializingProducer: what serializers are given, and what their errors become."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.compat.confluent_kafka import (
    KafkaException,
    KeySerializationError,
    SerializationContext,
    SerializingProducer,
    ValueSerializationError,
)
from tests.fakes.world import World


def test_serializers() -> None:
    world = World()
    seen: list[SerializationContext] = []

    def to_bytes(value: Any, context: SerializationContext) -> bytes:
        seen.append(SerializationContext(context.topic, context.field, context.headers))
        return str(value).encode()

    producer = SerializingProducer._around(world.producer)
    producer._key_serializer, producer._value_serializer = None, to_bytes
    producer.produce("test", "k", 7, 0)
    world.settle()
    assert world.values() == [b"7"] and seen == [SerializationContext("test", "value", None)]
    producer._value_serializer = lambda value, context: 1 / 0
    with pytest.raises(ValueSerializationError) as caught:
        producer.produce("test", "k", 7)
    assert caught.value.name == "_VALUE_SERIALIZATION" and isinstance(caught.value.exception, ZeroDivisionError)
    producer._key_serializer = producer._value_serializer
    with pytest.raises(KeySerializationError) as other:
        producer.produce("test", "k", 7)
    assert isinstance(other.value, KafkaException) and other.value.__cause__ is other.value.exception
    with pytest.raises(TypeError, match="topic must be a str"):
        producer.produce(1, "k", 7)  # type: ignore[arg-type]


class Builder:
    """Makes a serializer, and takes the options of its own."""

    def __init__(self, **gives: Any) -> None:
        self.gives = gives
        self.closed = 0
        self.resolver: Any = None

    def build(self, conf: dict[str, Any], is_key: bool) -> Any:
        return self.gives.get("pair", (self, {name: value for name, value in conf.items() if name != "own.option"}))

    def __call__(self, value: Any, context: Any) -> bytes:
        return b"built"

    def set_cluster_id_resolver(self, resolver: Any) -> None:
        self.resolver = resolver

    def close(self) -> None:
        self.closed += 1


def test_builders_make_serializers_and_their_options_are_theirs() -> None:
    builder = Builder()
    options = {"bootstrap.servers": "127.0.0.1:1", "own.option": 1, "key.serializer.builder": builder}
    producer = SerializingProducer[str, int](options)
    assert producer._key_serializer is builder and builder.resolver == producer.cluster_id
    assert producer.close(0) and producer.close(0) and builder.closed == 1
    with pytest.raises(ValueError, match=r"key\.serializer and key\.serializer\.builder cannot both"):
        SerializingProducer({**options, "key.serializer": str})
    with pytest.raises(ValueError, match=r"build\(\) of Builder must give a serializer and a dict"):
        SerializingProducer({**options, "value.serializer.builder": Builder(pair=5)})
    assert builder.closed == 2  # what was made before goes with it
    with pytest.raises(RuntimeError, match="closed"):
        producer.produce("test", "k", 7)
