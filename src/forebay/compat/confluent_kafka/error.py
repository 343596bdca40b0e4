"""Errors under confluent-kafka's names: those of calls, and those of a producer's serializers."""

from __future__ import annotations

from forebay.compat._librdkafka_errors import KafkaError, KafkaException

__all__ = [
    "KafkaError",
    "KafkaException",
    "KeySerializationError",
    "ProduceError",
    "SerializationError",
    "ValueSerializationError",
]


class SerializationError(KafkaException):
    """A key or value could not be made bytes."""


class ProduceError(KafkaException):
    """A message could not be produced; ``exception`` is what was raised, ``args[0]`` the KafkaError."""

    kafka_message = None

    def __init__(self, kafka_error: KafkaError, exception: BaseException | None = None) -> None:
        super().__init__(kafka_error)
        self.exception = exception

    @property
    def code(self) -> int:
        """Of the KafkaError."""
        found: KafkaError = self.args[0]
        return found.code()

    @property
    def name(self) -> str:
        """Of the KafkaError."""
        found: KafkaError = self.args[0]
        return found.name()


class KeySerializationError(ProduceError, SerializationError):
    """The key's serializer raised."""

    def __init__(self, exception: BaseException | None = None) -> None:
        super().__init__(KafkaError(KafkaError._KEY_SERIALIZATION, str(exception)), exception)

    def __reduce__(self) -> tuple[type, tuple[BaseException | None]]:
        return type(self), (self.exception,)


class ValueSerializationError(ProduceError, SerializationError):
    """The value's serializer raised."""

    def __init__(self, exception: BaseException | None = None) -> None:
        super().__init__(KafkaError(KafkaError._VALUE_SERIALIZATION, str(exception)), exception)

    def __reduce__(self) -> tuple[type, tuple[BaseException | None]]:
        return type(self), (self.exception,)
