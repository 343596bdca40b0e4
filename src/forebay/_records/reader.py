"""The strict reader of record batches, for splits, tests and tools: ``read_batches(data)``.

Any bytes either parse or raise one of two errors.  CorruptRecordError says that they are damaged (sizes, checksum,
magic number, compressed stream).  InvalidRecordError says that an intact batch makes no sense.  Each length is checked
before it is used, and memory grows with the bytes that are there.  This reader refuses what Java's reader accepts
(lengths below -1, offsets that do not ascend, bits beyond a varint's width, header keys that are not UTF-8), because it
also checks our own writer.
"""

from __future__ import annotations

import struct

from forebay._records.batch_legacy import read_legacy
from forebay._records.batch_v2 import checksum
from forebay._records.codec_packages import Chunk
from forebay._records.compression import CompressionType
from forebay._records.decoded import Batch, Record
from forebay._records.decompression import decompress
from forebay._records.layout import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    LEGACY_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAGIC_V0,
    MAGIC_V2,
    NO_SEQUENCE,
    SIZE_AT,
    SIZE_UP_TO_MAGIC,
    V2_ATTRIBUTES_AT,
    V2_HEADER_FIELDS,
    V2_MIN_HEADER_SIZE,
    V2_MIN_RECORD_SIZE,
    increment_sequence,
    wrap64,
)
from forebay.errors import CorruptRecordError, InvalidRecordError

DEFAULT_LIMIT = 128 * 1024 * 1024
"""Most bytes that one batch may decompress to, by default: four times the default of buffer.memory."""


def next_batch_size(data: Chunk, at: int = 0, *, max_size: int | None = None) -> int | None:
    """The whole size in bytes of the batch or message that begins at ``at``; None if too few bytes are there.

    Raises:
        forebay.errors.CorruptRecordError: the size is impossible or over ``max_size``, or the magic number unknown.
    """
    left = len(data) - at
    if left < LOG_OVERHEAD:
        return None
    size = int.from_bytes(data[at + SIZE_AT : at + LOG_OVERHEAD], "big", signed=True)
    if size < LEGACY_OVERHEAD[MAGIC_V0]:
        raise CorruptRecordError(f"batch at byte {at}: size {size} is below the minimum of {LEGACY_OVERHEAD[MAGIC_V0]}")
    if max_size is not None and size > max_size:
        raise CorruptRecordError(f"batch at byte {at}: size {size} is over the limit of {max_size}")
    if left < SIZE_UP_TO_MAGIC:
        return None
    magic = data[at + MAGIC_AT]
    if magic > MAGIC_V2:
        raise CorruptRecordError(f"batch at byte {at}: magic number {magic} is unknown, allowed: 0 to 2")
    return LOG_OVERHEAD + size


def read_batches(
    data: Chunk, *, limit: int = DEFAULT_LIMIT, partial: bool = False, max_size: int | None = None
) -> list[Batch]:
    """All batches in ``data``, of any format, with their records.

    Args:
        limit: most bytes that one batch may decompress to.
        partial: whether to leave out a last batch that is cut short, as in a fetch response.
        max_size: most bytes that one batch may claim to have.

    Raises:
        forebay.errors.CorruptRecordError: damaged or cut short.
        forebay.errors.InvalidRecordError: intact, but no batch can be so.
    """
    data = bytes(data)
    batches: list[Batch] = []
    at = 0
    while at < len(data):
        size = next_batch_size(data, at, max_size=max_size)
        if size is None or size > len(data) - at:
            if partial:
                break
            wanted = "more than its header" if size is None else f"{size} bytes"
            raise CorruptRecordError(f"batch at byte {at} is cut short: {wanted} wanted, {len(data) - at} left")
        read = _read_v2 if data[at + MAGIC_AT] == MAGIC_V2 else read_legacy
        batches.append(read(data, at, size, limit))
        at += size
    return batches


def _read_v2(data: bytes, at: int, size: int, limit: int) -> Batch:
    if size < BATCH_OVERHEAD:
        raise CorruptRecordError(f"batch at byte {at}: {size} bytes are less than a header of {BATCH_OVERHEAD}")
    fields = struct.unpack_from(V2_HEADER_FIELDS, data, at)
    (base_offset, _, leader_epoch, _, crc, attributes, last_delta, base_timestamp, max_timestamp) = fields[:9]
    (producer_id, producer_epoch, base_sequence, count) = fields[9:]
    computed = checksum(data[at + V2_ATTRIBUTES_AT : at + size])
    if crc != computed:
        raise CorruptRecordError(
            f"batch at byte {at}: checksum {crc:#010x} does not match the computed {computed:#010x}"
        )
    codec = attributes & CODEC_MASK
    if codec > CompressionType.ZSTD:
        raise InvalidRecordError(f"batch at byte {at}: compression codec {codec} is unknown, allowed: 0 to 4")
    payload = data[at + BATCH_OVERHEAD : at + size]
    records = read_records(
        payload if codec == CompressionType.NONE else decompress(CompressionType(codec), payload, limit),
        count=count,
        last_offset_delta=last_delta,
        base_offset=base_offset,
        base_timestamp=base_timestamp,
        base_sequence=base_sequence,
        append_time=max_timestamp if attributes & LOG_APPEND_TIME_BIT else None,
    )
    return Batch(
        magic=MAGIC_V2,
        base_offset=base_offset,
        last_offset=wrap64(base_offset + last_delta),
        crc=crc,
        attributes=attributes,
        max_timestamp=max_timestamp,
        size=size,
        payload_size=len(payload),
        base_timestamp=base_timestamp,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records=records,
    )


def read_records(
    section: bytes,
    *,
    count: int,
    last_offset_delta: int | None = None,
    base_offset: int = 0,
    base_timestamp: int = 0,
    base_sequence: int = NO_SEQUENCE,
    append_time: int | None = None,
) -> tuple[Record, ...]:
    """The ``count`` records of an uncompressed v2 records section.

    Args:
        last_offset_delta: the header's; offset deltas may not exceed it.
        append_time: the timestamp of all records where the broker sets it.

    Raises:
        forebay.errors.InvalidRecordError: too few or too many records for the bytes, or a malformed one.
    """
    if count < 0 or count > len(section) // V2_MIN_RECORD_SIZE:
        raise InvalidRecordError(f"record count {count} is impossible for {len(section)} bytes of records")
    cursor = _Cursor(section)
    records: list[Record] = []
    previous = -1
    for cursor.index in range(count):
        start = cursor.at
        timestamp_delta, offset_delta, key, value = cursor.open_record()
        headers = cursor.headers()
        cursor.close_record()
        if offset_delta <= previous or (last_offset_delta is not None and offset_delta > last_offset_delta):
            raise cursor.error(f"offset delta {offset_delta} after {previous}, batch's last {last_offset_delta}")
        previous = offset_delta
        records.append(
            Record(
                wrap64(base_offset + offset_delta),
                wrap64(base_timestamp + timestamp_delta) if append_time is None else append_time,
                key,
                value,
                headers,
                NO_SEQUENCE if base_sequence < 0 else increment_sequence(base_sequence, offset_delta),
                cursor.at - start,
            )
        )
    if cursor.at != len(section):
        raise InvalidRecordError(f"{len(section) - cursor.at} bytes are left after the declared {count} records")
    return tuple(records)


def read_headers(section: bytes) -> tuple[tuple[str, bytes | None], ...]:
    """The headers of one record's header section.

    Raises:
        forebay.errors.InvalidRecordError: malformed.
    """
    return _Cursor(section).headers()


class _Cursor:
    """A position in a records section.  It never passes ``end``, the end of the section or of the open record."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.end = len(data)
        self.index = 0

    def error(self, why: str) -> InvalidRecordError:
        return InvalidRecordError(f"record {self.index} (at byte {self.at} of the records): {why}")

    def varint(self, bits: int = 32) -> int:
        """A zig-zag number of at most ``bits`` bits."""
        value = shift = 0
        while True:
            if self.at >= self.end:
                raise self.error("a number is cut short")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift >= bits:
                raise self.error(f"a number takes more bytes than one of {bits} bits can")
        if value >> bits:
            raise self.error(f"a number does not fit {bits} bits")
        return (value >> 1) ^ -(value & 1)

    def take(self, what: str, *, nullable: bool = True) -> bytes | None:
        """A length, and so many bytes; None for -1."""
        size = self.varint()
        if size == -1 and nullable:
            return None
        if size < 0 or size > self.end - self.at:
            raise self.error(f"{what} of {size} bytes, {self.end - self.at} left")
        self.at += size
        return self.data[self.at - size : self.at]

    def open_record(self) -> tuple[int, int, bytes | None, bytes | None]:
        self.end = len(self.data)
        size = self.varint()
        if size < V2_MIN_RECORD_SIZE - 1 or size > self.end - self.at:
            raise self.error(
                f"body of {size} bytes, {self.end - self.at} left, at least {V2_MIN_RECORD_SIZE - 1} needed"
            )
        self.end = self.at + size
        self.at += 1  # the record's attributes: no bit has a meaning yet
        return self.varint(64), self.varint(), self.take("key"), self.take("value")

    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        count = self.varint()
        if count == 0:
            return ()
        if count < 0 or count > (self.end - self.at) // V2_MIN_HEADER_SIZE:
            raise self.error(f"{count} headers in {self.end - self.at} bytes")
        return tuple((self.header_key(), self.take("header value")) for _ in range(count))

    def header_key(self) -> str:
        key = self.take("header key", nullable=False)
        try:
            return (key or b"").decode()
        except UnicodeDecodeError as error:
            raise self.error(f"header key {key!r} is not UTF-8") from error

    def close_record(self) -> None:
        if self.at != self.end:
            raise self.error(f"{self.end - self.at} bytes are left in its body")
