"""ListOffsets v2 to v6, for one partition: the first offset of its log, or the last one for a reader."""

from __future__ import annotations

from typing import NamedTuple

from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require
from forebay.model import TopicPartition

LATEST = -1
"""Asks for the offset of the next record; with ``READ_COMMITTED``, of the first that is not decided."""
EARLIEST = -2

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

_ANY_EPOCH = -1
_CONSUMER = -1


class ListOffsetsResponse(NamedTuple):
    """``offset`` is valid if ``error_code`` is 0; ``leader_epoch`` is -1 before v4."""

    throttle_time_ms: int
    error_code: int
    offset: int
    leader_epoch: int = -1


def encode_list_offsets(version: int, where: TopicPartition, which: int, isolation: int) -> list[bytes]:
    """The request's body.

    Args:
        which: ``LATEST``, ``EARLIEST``, or a Unix time in ms (the first record at or after it).
        isolation: ``READ_COMMITTED`` or ``READ_UNCOMMITTED``.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.LIST_OFFSETS, version)
    writer = Writer(flexible=is_flexible(ApiKey.LIST_OFFSETS, version))
    writer.int32(_CONSUMER)
    writer.int8(isolation)
    writer.count(1)
    writer.string(where.topic)
    writer.count(1)
    writer.int32(where.partition)
    if version >= 4:
        writer.int32(_ANY_EPOCH)
    writer.int64(which)
    writer.tags()
    writer.tags()
    writer.tags()
    return [writer.take()]


def decode_list_offsets(version: int, payload: bytes | memoryview) -> ListOffsetsResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense, or have any number of partitions but one.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.LIST_OFFSETS, version)
    flexible = is_flexible(ApiKey.LIST_OFFSETS, version)
    reader = Reader(payload, what=f"ListOffsets v{version} response", flexible=flexible)
    found: list[ListOffsetsResponse] = []
    throttle = reader.int32()

    def partition() -> None:
        reader.int32()
        error_code = reader.int16()
        reader.int64()
        offset = reader.int64()
        epoch = reader.int32() if version >= 4 else -1
        reader.tags()
        found.append(ListOffsetsResponse(throttle, error_code, offset, epoch))

    def topic() -> None:
        reader.string()
        reader.array(partition, 22)
        reader.tags()

    reader.array(topic, 3 if flexible else 6)
    if len(found) != 1:
        reader.fail(f"{len(found)} partitions for the one that was asked for")
    reader.tags()
    return found[0]
