"""Errors the client finds itself, without an answer of a broker."""

from __future__ import annotations

from forebay.errors._base import ApiError, AuthenticationError, KafkaError
from forebay.errors._broker import KafkaTimeoutError, NetworkError


class ConfigError(KafkaError, ValueError):
    """An option is unknown, out of range, or at odds with another."""


class IllegalArgumentError(KafkaError, ValueError):
    """An argument of a call is out of range."""


class IllegalStateError(KafkaError, RuntimeError):
    """The producer is not in a state that allows this call."""


class ProducerClosedError(IllegalStateError):
    """The producer was closed before or while this call ran."""

    def __init__(self, message: str = "", /, **context: object) -> None:
        super().__init__(message or "Cannot perform operation after producer has been closed", **context)


class ForkedProducerError(IllegalStateError):
    """A copy of the producer in a forked child: only the process that made it can use it."""

    def __init__(self, message: str = "", /, **context: object) -> None:
        super().__init__(
            message or "This producer belongs to the parent process; make one of your own after the fork", **context
        )


class InterruptError(KafkaError):
    """A blocked call was interrupted."""


class SerializationError(KafkaError):
    """A key or value could not be turned into bytes."""


class UnserializableTypeError(SerializationError, TypeError):
    """A key or value of a type that nothing turns into bytes, such as str without a serializer."""


class ProtocolError(ApiError):
    """The peer sent bytes that make no sense here; it may not be Kafka at all."""

    stranger: bool = False
    """Whether the bytes are those of another protocol that is known, such as HTTP, SSH or TLS."""


class DisconnectError(NetworkError):
    """The connection was lost before the answer came."""


class BufferExhaustedError(KafkaTimeoutError, BufferError):
    """No room in buffer.memory within max.block.ms (at once for send_nowait)."""


class SslAuthenticationError(AuthenticationError):
    """The TLS handshake failed: certificate, host name, or what the broker asks of the client."""


class TransactionAbortedError(ApiError):
    """The record's transaction was aborted before the record was sent."""


class PurgedError(ApiError):
    """The record was dropped by ``purge()``.

    ``context["phase"]`` is ``queued`` if it was never sent; ``in flight`` if it was, and may have been written.
    """


class CommitFailedError(KafkaError):
    """The group has moved on: its offsets can no longer be committed by this member."""
