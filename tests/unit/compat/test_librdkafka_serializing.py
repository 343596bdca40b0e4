"""SerializingProducer: what serializers are given, and what their errors become."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.compat.confluent_kafka import KafkaException, SerializationContext, SerializingProducer
from tests.fakes.world import World


def test_serializers() -> None:
    world = World()
    seen: list[SerializationContext] = []

    def to_bytes(value: Any, context: SerializationContext) -> bytes:
        seen.append(context)
        return str(value).encode()

    producer = SerializingProducer._around(world.producer)
    producer._key_serializer, producer._value_serializer = None, to_bytes
    producer.produce("test", "k", 7, 0)
    world.settle()
    assert world.values() == [b"7"] and seen == [SerializationContext("test", "value", None)]
    producer._value_serializer = lambda value, context: 1 / 0
    with pytest.raises(KafkaException) as caught:
        producer.produce("test", "k", 7)
    assert caught.value.args[0].name() == "_VALUE_SERIALIZATION"
