"""What serializers are told, and raise, under confluent-kafka's names; its serializers themselves go in as they are."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from forebay.compat.confluent_kafka.error import SerializationError

__all__ = ["MessageField", "SerializationContext", "SerializationError"]


class MessageField(StrEnum):
    """Which part of a message is serialized."""

    NONE = "none"
    KEY = "key"
    VALUE = "value"


class SerializationContext:
    """What a serializer is told of a key or value; ``field`` is a MessageField."""

    def __init__(self, topic: str, field: str, headers: Any = None) -> None:
        self.topic = topic
        self.field = field
        self.headers = headers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SerializationContext):
            return NotImplemented
        return (self.topic, self.field, self.headers) == (other.topic, other.field, other.headers)

    def __repr__(self) -> str:
        return f"SerializationContext({self.topic!r}, {str(self.field)!r}, {self.headers!r})"
