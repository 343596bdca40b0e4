"""CreateTopics v2 to v7, for one topic.  The controller answers when it has decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from forebay._protocol.primitives import UUID_SIZE, Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require
from forebay.errors import UnsupportedVersionError

BROKER_DEFAULT = -1
"""For the number of partitions and the replication factor (v4 and later, KIP-464)."""


class CreateTopicsResponse(NamedTuple):
    """``error_message`` is for people.  A success does not say when other brokers know the topic."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None


def encode_create_topics(
    version: int,
    name: str,
    partitions: int,
    replication_factor: int,
    *,
    configs: Mapping[str, str | None],
    timeout_ms: int,
) -> list[bytes]:
    """The request's body.

    Args:
        partitions: or ``BROKER_DEFAULT``, as ``replication_factor``.
        configs: of the topic, by Kafka's names; None for the broker's default.
        timeout_ms: how long the controller may take.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours, or knows no defaults.
    """
    require(ApiKey.CREATE_TOPICS, version)
    if version < 4 and BROKER_DEFAULT in (partitions, replication_factor):
        raise UnsupportedVersionError(f"CreateTopics v{version} knows no broker defaults, v4 and later do")
    writer = Writer(flexible=is_flexible(ApiKey.CREATE_TOPICS, version))
    writer.count(1)
    writer.string(name)
    writer.int32(partitions)
    writer.int16(replication_factor)
    # No assignments of replicas to brokers: the controller chooses.
    writer.count(0)
    writer.count(len(configs))
    for key, value in configs.items():
        writer.string(key)
        writer.string(value)
        writer.tags()
    writer.tags()
    writer.int32(timeout_ms)
    # validate_only is false.
    writer.boolean(False)
    writer.tags()
    return [writer.take()]


def decode_create_topics(version: int, payload: bytes | memoryview) -> CreateTopicsResponse:
    """Read the response to a request of ``version``; the topic's configuration in it is skipped.

    Raises:
        ProtocolError: the bytes make no sense, or have any number of topics but one.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.CREATE_TOPICS, version)
    flexible = is_flexible(ApiKey.CREATE_TOPICS, version)
    reader = Reader(payload, what=f"CreateTopics v{version} response", flexible=flexible)
    throttle = reader.int32()
    topics = reader.array(lambda: _topic(reader, version), 6)
    if len(topics) != 1:
        reader.fail(f"{len(topics)} topics for the one that was asked for")
    reader.tags()
    return CreateTopicsResponse(throttle, *topics[0])


def _topic(reader: Reader, version: int) -> tuple[int, str | None]:
    reader.string()
    if version >= 7:
        reader.raw(UUID_SIZE)
    error_code, error_message = reader.int16(), reader.nullable_string()
    if version >= 5:
        reader.int32()
        reader.int16()
        for _ in range(reader.count(6)):
            _skip_config(reader)
    reader.tags()
    return error_code, error_message


def _skip_config(reader: Reader) -> None:
    reader.string()
    reader.nullable_string()
    # Read-only, source and sensitive take a byte each.
    reader.raw(3)
    reader.tags()
