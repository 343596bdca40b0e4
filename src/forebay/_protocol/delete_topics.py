"""DeleteTopics v1 to v6, for one topic by its name.  The controller answers when it has decided."""

from __future__ import annotations

from typing import NamedTuple

from forebay._protocol.primitives import UUID_SIZE, Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require

_BY_ID = 6
"""From this version on a topic may be named by its id instead (KIP-516)."""
_WITH_MESSAGE = 5


class DeleteTopicsResponse(NamedTuple):
    """``error_message`` is for people, None before v5.  A success does not say when other brokers know of it."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None


def encode_delete_topics(version: int, name: str, *, timeout_ms: int) -> list[bytes]:
    """The request's body.

    Args:
        timeout_ms: how long the controller may take.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.DELETE_TOPICS, version)
    writer = Writer(flexible=is_flexible(ApiKey.DELETE_TOPICS, version))
    writer.count(1)
    writer.string(name)
    if version >= _BY_ID:
        writer.raw(bytes(UUID_SIZE))
        writer.tags()
    writer.int32(timeout_ms)
    writer.tags()
    return [writer.take()]


def decode_delete_topics(version: int, payload: bytes | memoryview) -> DeleteTopicsResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense, or have any number of topics but one.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.DELETE_TOPICS, version)
    flexible = is_flexible(ApiKey.DELETE_TOPICS, version)
    reader = Reader(payload, what=f"DeleteTopics v{version} response", flexible=flexible)
    throttle = reader.int32()
    topics = reader.array(lambda: _topic(reader, version), 4)
    if len(topics) != 1:
        reader.fail(f"{len(topics)} topics for the one that was asked for")
    reader.tags()
    return DeleteTopicsResponse(throttle, *topics[0])


def _topic(reader: Reader, version: int) -> tuple[int, str | None]:
    if version >= _BY_ID:
        reader.nullable_string()
        reader.raw(UUID_SIZE)
    else:
        reader.string()
    error_code = reader.int16()
    error_message = reader.nullable_string() if version >= _WITH_MESSAGE else None
    reader.tags()
    return error_code, error_message
