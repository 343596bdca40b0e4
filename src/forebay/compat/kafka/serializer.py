"""kafka-python's serializers: the base class for those of programs, text and JSON."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from typing import Any, Self

__all__ = ["DefaultSerializer", "Deserializer", "JsonSerializer", "Serializer"]

BYTES = (bytes, bytearray, memoryview, type(None))


class Serializer(ABC):
    """Turns keys or values into bytes."""

    @abstractmethod
    def serialize(self, topic: str, headers: list[tuple[str, bytes]], data: Any) -> Any:
        """The bytes of ``data``, None for null; may add pairs to ``headers``."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Called once by the producer's ``close``."""


class Deserializer(ABC):
    """Turns bytes into keys or values, for consumers of kafka-python."""

    def __new__(cls, *given: Any, **named: Any) -> Self:
        # A consumer warns of what is no Deserializer of its own module.  Registered when one is made, because by then
        # most programs have imported both.
        theirs = sys.modules.get("kafka.serializer")
        if theirs is not None and hasattr(theirs, "Deserializer"):
            theirs.Deserializer.register(cls)
        return super().__new__(cls)

    @abstractmethod
    def deserialize(self, topic: str, headers: list[tuple[str, bytes]], data: bytes | None) -> Any:
        """What ``data`` stands for."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Called once by the consumer's ``close``."""


class DefaultSerializer(Serializer, Deserializer):
    """Text in an encoding; bytes and None as they are."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self.encoding = encoding

    def serialize(self, topic: str, headers: list[tuple[str, bytes]], data: Any) -> Any:
        return data if type(data) in BYTES else data.encode(self.encoding)

    def deserialize(self, topic: str, headers: list[tuple[str, bytes]], data: bytes | None) -> Any:
        return None if data is None else data.decode(self.encoding)


class JsonSerializer(DefaultSerializer):
    """JSON; None stays null."""

    def serialize(self, topic: str, headers: list[tuple[str, bytes]], data: Any) -> Any:
        return None if data is None else super().serialize(topic, headers, json.dumps(data))

    def deserialize(self, topic: str, headers: list[tuple[str, bytes]], data: bytes | None) -> Any:
        return None if data is None else json.loads(super().deserialize(topic, headers, data))
