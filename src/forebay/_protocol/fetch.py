"""Fetch v4 to v12, for one partition and without a fetch session: a piece of its log, as it is stored.

v13 and later name topics by id only, and bring nothing that is needed here.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require
from forebay.model import TopicPartition

_CONSUMER = -1
_UNKNOWN = -1
_NO_SESSION = (0, -1)

# error, high watermark, last stable offset; from v5 on the log's start
_OFFSETS = Struct(">hqq")


class AbortedTransaction(NamedTuple):
    """Transactional records of ``producer_id`` from ``first_offset`` up to its abort marker do not count."""

    producer_id: int
    first_offset: int


class FetchResponse(NamedTuple):
    """``error_code`` is that of the response, or of the partition if that is 0.  Unknown offsets are -1.

    ``records`` are whole batches.  The first may begin before the offset asked for, and the last may be cut short.
    ``aborted`` is for readers of committed records only.
    """

    throttle_time_ms: int
    error_code: int
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: tuple[AbortedTransaction, ...] = ()
    records: bytes = b""


def encode_fetch(
    version: int,
    where: TopicPartition,
    offset: int,
    *,
    isolation: int,
    max_bytes: int,
    max_wait_ms: int,
) -> list[bytes]:
    """The request's body.

    Args:
        offset: the first one wanted.
        isolation: ``READ_COMMITTED`` or ``READ_UNCOMMITTED`` of ``list_offsets``.
        max_bytes: of records; a larger first batch comes all the same.
        max_wait_ms: how long the broker may wait for a first record.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.FETCH, version)
    writer = Writer(flexible=is_flexible(ApiKey.FETCH, version))
    for number in (_CONSUMER, max_wait_ms, 1, max_bytes):
        writer.int32(number)
    writer.int8(isolation)
    if version >= 7:
        for number in _NO_SESSION:
            writer.int32(number)
    writer.count(1)
    writer.string(where.topic)
    writer.count(1)
    _write_partition(writer, version, where.partition, offset, max_bytes)
    writer.tags()
    if version >= 7:
        # No topics for a session to forget.
        writer.count(0)
    if version >= 11:
        # No rack, so the leader never sends us to a replica.
        writer.string("")
    writer.tags()
    return [writer.take()]


def _write_partition(writer: Writer, version: int, partition: int, offset: int, max_bytes: int) -> None:
    writer.int32(partition)
    if version >= 9:
        writer.int32(_UNKNOWN)
    writer.int64(offset)
    if version >= 12:
        writer.int32(_UNKNOWN)
    if version >= 5:
        writer.int64(_UNKNOWN)
    writer.int32(max_bytes)
    writer.tags()


def decode_fetch(version: int, payload: bytes | memoryview) -> FetchResponse:
    """Read the response to a request of ``version``; the records are copied, not looked into.

    Raises:
        ProtocolError: the bytes make no sense, or have any number of partitions but one.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.FETCH, version)
    flexible = is_flexible(ApiKey.FETCH, version)
    reader = Reader(payload, what=f"Fetch v{version} response", flexible=flexible)
    found: list[FetchResponse] = []
    throttle = reader.int32()
    error_code = 0
    if version >= 7:
        error_code = reader.int16()
        reader.int32()

    def topic() -> None:
        reader.string()
        found.extend(reader.array(lambda: _partition(reader, version, throttle), 24))
        reader.tags()

    reader.array(topic, 3 if flexible else 6)
    reader.tags()
    if error_code:
        # A response with an error of its own has no partitions.
        return FetchResponse(throttle, error_code)
    if len(found) != 1:
        reader.fail(f"{len(found)} partitions for the one that was asked for")
    return found[0]


def _partition(reader: Reader, version: int, throttle: int) -> FetchResponse:
    reader.int32()
    error_code, high_watermark, last_stable = reader.fields(_OFFSETS)
    log_start = reader.int64() if version >= 5 else _UNKNOWN
    aborted = tuple([_aborted(reader) for _ in range(reader.count(16))])
    if version >= 11:
        reader.int32()
    records = reader.nullable_bytes() or b""
    reader.tags()
    return FetchResponse(throttle, error_code, high_watermark, last_stable, log_start, aborted, records)


def _aborted(reader: Reader) -> AbortedTransaction:
    found = AbortedTransaction(reader.int64(), reader.int64())
    reader.tags()
    return found
