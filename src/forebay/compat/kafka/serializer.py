"""kafka-python's serializers: the base class for those of programs, text and JSON."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

__all__ = ["DefaultSerializer", "JsonSerializer", "Serializer"]

BYTES = (bytes, bytearray, memoryview, type(None))


class Serializer(ABC):
    """Turns keys or values into bytes."""

    @abstractmethod
    def serialize(self, topic: str, headers: list[tuple[str, bytes]], data: Any) -> Any:
        """The bytes of ``data``, None for null; may add pairs to ``headers``."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Called once by the producer's ``close``."""


class DefaultSerializer(Serializer):
    """Text in an encoding; bytes and None as they are."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self.encoding = encoding

    def serialize(self, topic: str, headers: list[tuple[str, bytes]], data: Any) -> Any:
        return data if type(data) in BYTES else data.encode(self.encoding)


class JsonSerializer(DefaultSerializer):
    """JSON; None stays null."""

    def serialize(self, topic: str, headers: list[tuple[str, bytes]], data: Any) -> Any:
        return None if data is None else super().serialize(topic, headers, json.dumps(data))
