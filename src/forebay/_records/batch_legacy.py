"""Message formats v0 and v1: the writer for brokers whose Produce version is below 3, and a strict reader.

An entry is an offset, a size and one message.  Compressed messages are a set of entries inside the value of a wrapper
message.  Their offsets are absolute in v0 and relative in v1.  The wrapper has the absolute offset of the last one, and
in v1 the largest timestamp.  v0 has no timestamps, and its lz4 has a wrong header checksum on purpose.  Neither format
has headers, producer ids or zstd.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence

from forebay._records.compression import CompressionType, Compressor
from forebay._records.decoded import Batch, Record
from forebay._records.decompression import break_lz4_checksum, decompress, mend_lz4_checksum
from forebay._records.layout import (
    CODEC_MASK,
    LEGACY_ATTRIBUTES_AT,
    LEGACY_CRC_AT,
    LEGACY_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAGIC_V0,
    MAGIC_V1,
    NO_TIMESTAMP,
    OFFSET_AT,
    V1_TIMESTAMP_AT,
)
from forebay.errors import (
    CorruptRecordError,
    IllegalArgumentError,
    InvalidRecordError,
    UnsupportedCompressionTypeError,
)


def write_message(
    magic: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None, *, attributes: int = 0
) -> bytes:
    """One log entry; ``timestamp`` (ms) is left out of v0."""
    body = struct.pack(">bb", magic, attributes)
    if magic != MAGIC_V0:
        body += struct.pack(">q", timestamp)
    body += _field(key) + _field(value)
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def _field(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else struct.pack(">i", len(data)) + data


def write_wrapper(
    inner: Sequence[bytes],
    compressor: Compressor,
    *,
    magic: int,
    last_offset: int,
    timestamp: int,
    log_append: bool = False,
) -> bytes:
    """The entry whose value is the compressed set ``inner`` of entries.

    Args:
        timestamp: the largest of the inner ones, or the broker's append time (ms).
    """
    payload = compressor.compress(inner)
    if magic == MAGIC_V0 and compressor.type == CompressionType.LZ4:
        payload = break_lz4_checksum(payload)
    attributes = compressor.type | (LOG_APPEND_TIME_BIT if log_append else 0)
    return write_message(magic, last_offset, timestamp, None, payload, attributes=attributes)


def convert_v2(records: Iterable[Record], *, magic: int, compressor: Compressor) -> bytes:
    """The records of a v2 batch as message format 0 or 1, for a broker that takes no later format.

    Args:
        records: with offsets from the batch's base, as they will be written; sequences are ignored.
        magic: 0 for Produce versions 0 and 1, 1 for version 2.
        compressor: the batch's codec.

    Raises:
        forebay.errors.IllegalArgumentError: a record has headers.
        forebay.errors.UnsupportedCompressionTypeError: the codec is zstd.
    """
    limit = f"the broker takes Produce up to version {2 if magic == MAGIC_V1 else 1}, which is message format {magic}"
    if compressor.type == CompressionType.ZSTD:
        raise UnsupportedCompressionTypeError(
            f"Down-conversion of zstandard-compressed batches is not supported: {limit}"
        )
    compressed = compressor.type != CompressionType.NONE
    entries: list[bytes] = []
    last = largest = first = NO_TIMESTAMP
    for record in records:
        if record.headers:
            raise IllegalArgumentError(
                f"Magic v{magic} does not support record headers: {limit}, "
                f"and the record at offset {record.offset} has the header {record.headers[0][0]!r}"
            )
        first = record.offset if not entries else first
        offset = record.offset - first if compressed and magic == MAGIC_V1 else record.offset
        entries.append(write_message(magic, offset, record.timestamp, record.key, record.value))
        last, largest = record.offset, max(largest, record.timestamp)
    if not compressed or not entries:
        return b"".join(entries)
    return write_wrapper(entries, compressor, magic=magic, last_offset=last, timestamp=largest)


def read_legacy(data: bytes, at: int, size: int, limit: int) -> Batch:
    """The entry of ``size`` bytes at ``at``: a message, or a wrapper with its inner messages.

    Raises:
        forebay.errors.CorruptRecordError: its size or checksum is wrong, or its compressed set damaged.
        forebay.errors.InvalidRecordError: it is intact, but no message can be so.
    """
    message = _Message(data, at, size)
    codec = message.codec
    if codec == CompressionType.NONE:
        return message.batch((message.record(message.offset),))
    if message.value is None:
        raise message.error(f"Found invalid compressed record set with null value (magic = {message.magic})")
    payload = message.value
    if message.magic == MAGIC_V0 and codec == CompressionType.LZ4:
        payload = mend_lz4_checksum(payload)
    inner = _inner_messages(message, decompress(codec, payload, limit))
    base = 0
    # Some producers left 0 in the wrapper.  Then the inner offsets are taken as they are, as in Java.
    if message.magic == MAGIC_V1 and message.offset != 0:
        base = message.offset - inner[-1].offset
        if base < 0:
            raise message.error(
                f"Found invalid wrapper offset {message.offset}: the last inner message has {inner[-1].offset}"
            )
    stamp = message.timestamp if message.attributes & LOG_APPEND_TIME_BIT and message.magic == MAGIC_V1 else None
    return message.batch(tuple(each.record(base + each.offset, stamp) for each in inner))


def _inner_messages(wrapper: _Message, data: bytes) -> list[_Message]:
    inner: list[_Message] = []
    at = 0
    while at < len(data):
        size = LOG_OVERHEAD + int.from_bytes(data[at + 8 : at + LOG_OVERHEAD], "big", signed=True)
        if size < LOG_OVERHEAD + LEGACY_OVERHEAD[MAGIC_V0] or size > len(data) - at:
            raise wrapper.error(f"inner message at byte {at} of {size} bytes, {len(data) - at} left")
        message = _Message(data, at, size)
        if message.magic != wrapper.magic:
            raise wrapper.error(f"inner message at byte {at} has magic number {message.magic}")
        if message.codec != CompressionType.NONE:
            raise wrapper.error(f"inner message at byte {at} is compressed itself")
        if inner and message.offset <= inner[-1].offset:
            raise wrapper.error(f"inner offset {message.offset} after {inner[-1].offset}")
        inner.append(message)
        at += size
    if not inner:
        raise wrapper.error("Found invalid compressed record set with no inner records")
    return inner


class _Message:
    """One entry, checked on construction."""

    def __init__(self, data: bytes, at: int, size: int) -> None:
        self.at = at
        self.size = size
        self.magic = data[at + MAGIC_AT]
        self.offset: int = struct.unpack_from(">q", data, at + OFFSET_AT)[0]
        self.crc: int = struct.unpack_from(">I", data, at + LEGACY_CRC_AT)[0]
        if self.magic not in LEGACY_OVERHEAD:
            raise InvalidRecordError(f"message at byte {at}: magic number {self.magic}, allowed here: 0 and 1")
        if size < LOG_OVERHEAD + LEGACY_OVERHEAD[self.magic]:
            raise CorruptRecordError(f"message at byte {at}: {size} bytes are too few for magic number {self.magic}")
        computed = zlib.crc32(data[at + MAGIC_AT : at + size])
        if self.crc != computed:
            raise CorruptRecordError(
                f"message at byte {at}: checksum {self.crc:#010x} does not match the computed {computed:#010x}"
            )
        self.attributes = data[at + LEGACY_ATTRIBUTES_AT]
        self.timestamp = NO_TIMESTAMP
        fields = V1_TIMESTAMP_AT
        if self.magic == MAGIC_V1:
            self.timestamp = struct.unpack_from(">q", data, at + V1_TIMESTAMP_AT)[0]
            fields += 8
        end = at + size
        self.key, position = self._take(data, at + fields, end, "key")
        self.value, position = self._take(data, position, end, "value")
        if position != end:
            raise self.error(f"{end - position} bytes follow its value")

    def _take(self, data: bytes, at: int, end: int, what: str) -> tuple[bytes | None, int]:
        if end - at < 4:
            raise self.error(f"the length of its {what} is cut short")
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if size == -1:
            return None, at
        if size < 0 or size > end - at:
            raise self.error(f"{what} of {size} bytes, {end - at} left")
        return data[at : at + size], at + size

    def error(self, why: str) -> InvalidRecordError:
        return InvalidRecordError(f"message at byte {self.at} (offset {self.offset}): {why}")

    @property
    def codec(self) -> CompressionType:
        codec = self.attributes & CODEC_MASK
        if codec == CompressionType.ZSTD:
            raise self.error(f"ZStandard compression is not supported for magic {self.magic}")
        if codec > CompressionType.ZSTD:
            raise self.error(f"compression codec {codec} is unknown, allowed: 0 to 3")
        return CompressionType(codec)

    def record(self, offset: int, timestamp: int | None = None) -> Record:
        stamp = self.timestamp if timestamp is None else timestamp
        return Record(offset, stamp, self.key, self.value, size=self.size)

    def batch(self, records: tuple[Record, ...]) -> Batch:
        return Batch(
            magic=self.magic,
            base_offset=records[0].offset,
            last_offset=records[-1].offset,
            crc=self.crc,
            attributes=self.attributes,
            max_timestamp=self.timestamp,
            size=self.size,
            payload_size=len(self.value or b""),
            records=records,
        )
