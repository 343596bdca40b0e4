from __future__ import annotations

import itertools
import struct
import zlib
from typing import Any

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatch as PeerBatch
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay._records.batch_legacy import convert_v2, write_message, write_wrapper
from forebay._records.compression import CompressionType, compressor
from forebay._records.decoded import Batch, Record, TimestampType
from forebay._records.reader import read_batches
from forebay.errors import (
    CorruptRecordError,
    IllegalArgumentError,
    InvalidRecordError,
    KafkaError,
    UnsupportedCompressionTypeError,
)
from tests.support.examples import examples
from tests.support.records_builder import message_size
from tests.unit._records.goldens import V0_MESSAGE, V1_MESSAGE

NONE, GZIP, SNAPPY, LZ4, ZSTD = CompressionType
CODECS = [NONE, GZIP, SNAPPY, LZ4]
MAGICS = [0, 1]
both = pytest.mark.parametrize("magic", MAGICS)
BODIES = (None, b"", b"key", b"\1" * 1000)


def wrapper(magic: int, inner: list[bytes], last: int, *, codec: CompressionType = GZIP, append: bool = False) -> bytes:
    return write_wrapper(inner, compressor(codec), magic=magic, last_offset=last, timestamp=15, log_append=append)


def inner(magic: int, offsets: range) -> list[bytes]:
    return [write_message(magic, offset, 1 + offset, b"k", b"v") for offset in offsets]


def all_records(data: bytes) -> list[Record]:
    return [record for batch in read_batches(data) for record in batch.records]


def test_goldens() -> None:
    """J MemoryRecordsTest.testChecksum: the first message of v0 and v1, byte for byte."""
    for magic, golden in ((0, V0_MESSAGE), (1, V1_MESSAGE)):
        entry = write_message(magic, 7, 283843, b"key1", b"value1")
        assert entry == struct.pack(">qi", 7, len(golden)) + golden
        assert len(entry) == message_size(magic, b"key1", b"value1")


@pytest.mark.parametrize(("magic", "timestamp"), list(itertools.product(MAGICS, (-1, 0, 1))))
@pytest.mark.parametrize(("key", "value"), list(itertools.product(BODIES, repeat=2)))
@pytest.mark.parametrize("codec", CODECS)
def test_fields(magic: int, timestamp: int, key: bytes | None, value: bytes | None, codec: CompressionType) -> None:
    """J LegacyRecordTest.testFields, testEquality."""
    data = convert_v2([Record(0, timestamp, key, value)], magic=magic, compressor=compressor(codec))
    (batch,) = read_batches(data)
    ((offset, stamp, read_key, read_value, headers, sequence, _),) = batch.records
    assert (offset, stamp, read_key, read_value) == (0, -1 if magic == 0 else timestamp, key, value)
    assert (batch.magic, batch.codec, batch.size, headers, sequence) == (magic, codec, len(data), (), -1)
    assert batch.timestamp_type == (TimestampType.NONE if magic == 0 else TimestampType.CREATE_TIME)


@both
@pytest.mark.parametrize("codec", CODECS)
def test_any_damage_is_found(magic: int, codec: CompressionType) -> None:
    """J LegacyRecordTest.testChecksum: any byte from the checksum on."""
    data = convert_v2([Record(0, 5, b"key", b"value")], magic=magic, compressor=compressor(codec))
    for at in range(12, len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x40
        with pytest.raises(CorruptRecordError):
            read_batches(damaged)


@both
@pytest.mark.parametrize("codec", CODECS)
def test_offsets(magic: int, codec: CompressionType) -> None:
    """J testSetLastOffsetCompressed (last 500: 498 to 500): the wrapper's offset leads in v1, inner ones in v0."""
    records = [Record(offset, 10 + offset, b"k", str(offset).encode()) for offset in (498, 499, 500)]
    data = convert_v2(records, magic=magic, compressor=compressor(codec))
    assert [record.offset for record in all_records(data)] == [498, 499, 500]
    if codec == NONE:
        assert [batch.base_offset for batch in read_batches(data)] == [498, 499, 500]
        return
    assert struct.unpack_from(">q", data)[0] == 500
    moved = struct.pack(">q", 1000) + data[8:]
    (batch,) = read_batches(moved)
    assert (batch.base_offset, batch.last_offset) == ((998, 1000) if magic == 1 else (498, 500))
    assert batch.max_timestamp == (510 if magic == 1 else -1)


def test_wrapper_offset_zero() -> None:
    """J testIterateCompressedRecordWithWrapperOffsetZero: 0, 1, 2 all the same."""
    data = wrapper(1, inner(1, range(3)), 0)
    assert [record.offset for record in all_records(data)] == [0, 1, 2]


def test_wrapper_offset_below_the_inner_ones() -> None:
    """J testInvalidWrapperOffsetV1: wrapper 1, inner 2."""
    with pytest.raises(InvalidRecordError, match="wrapper offset 1: the last inner message has 2"):
        read_batches(wrapper(1, inner(1, range(3)), 1))


def test_log_append_time() -> None:
    """J v1 log append time 15 overrides all inner timestamps; v0 has none to override."""
    (batch,) = read_batches(wrapper(1, inner(1, range(3)), 2, append=True))
    assert batch.timestamp_type == TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in batch.records] == [15, 15, 15]
    assert [record.timestamp for record in all_records(wrapper(0, inner(0, range(3)), 2))] == [-1, -1, -1]


@both
def test_null_value_compressed(magic: int) -> None:
    """J testCompressedIterationWithNullValue."""
    with pytest.raises(InvalidRecordError, match="invalid compressed record set with null value"):
        read_batches(write_message(magic, 0, 0, None, None, attributes=GZIP))


@both
@pytest.mark.parametrize("codec", CODECS[1:])
def test_no_inner_records(magic: int, codec: CompressionType) -> None:
    """J testCompressedIterationWithEmptyRecords."""
    with pytest.raises(InvalidRecordError, match="no inner records"):
        read_batches(wrapper(magic, [b""], 0, codec=codec))


@both
def test_too_small(magic: int) -> None:
    """J too small a message, and a checksum that does not match."""
    body = bytes([magic, 0]) + bytes(7)
    with pytest.raises(CorruptRecordError, match="below the minimum of 14"):
        read_batches(struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body)
    if magic == 1:
        body += bytes(3)
        with pytest.raises(CorruptRecordError, match="28 bytes are too few for magic number 1"):
            read_batches(struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body)


def signed(magic: int, fields: bytes, attributes: int = 0) -> bytes:
    body = bytes([magic, attributes]) + bytes(8 * magic) + fields
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


@both
@pytest.mark.parametrize(
    ("fields", "match"),
    [
        (struct.pack(">ii", 50, -1), "key of 50 bytes, 4 left"),
        (struct.pack(">ii", -2, -1), "key of -2 bytes"),
        (struct.pack(">ii", -1, 1), "value of 1 bytes, 0 left"),
        (struct.pack(">iiB", -1, -1, 0), "1 bytes follow its value"),
        (struct.pack(">iHH", 2, 0, 0), "the length of its value is cut short"),
    ],
)
def test_wrong_lengths(magic: int, fields: bytes, match: str) -> None:
    with pytest.raises(InvalidRecordError, match=match):
        read_batches(signed(magic, fields))


@both
@pytest.mark.parametrize(
    ("content", "match"),
    [
        (lambda magic: write_message(1 - magic, 0, 0, None, b"v"), "inner message at byte 0 has magic number"),
        (lambda magic: wrapper(magic, inner(magic, range(1)), 0), "is compressed itself"),
        (lambda magic: inner(magic, range(1))[0] * 2, "inner offset 0 after 0"),
        (lambda magic: inner(magic, range(1))[0][:-1], "1 left|left"),
        (lambda magic: b"\0" * 40, "of 12 bytes"),
        (lambda magic: signed(2, bytes(20)), "magic number 2, allowed here: 0 and 1"),
    ],
)
def test_wrong_inner_messages(magic: int, content: Any, match: str) -> None:
    with pytest.raises(InvalidRecordError, match=match):
        read_batches(wrapper(magic, [content(magic)], 9))


@both
@pytest.mark.parametrize(
    ("codec", "match"), [(4, "ZStandard compression is not supported for magic"), (6, "codec 6 is unknown")]
)
def test_codecs_that_these_formats_lack(magic: int, codec: int, match: str) -> None:
    """J zstd magic 0/1: refused when read as well."""
    with pytest.raises(InvalidRecordError, match=match):
        read_batches(write_message(magic, 0, 0, None, b"v", attributes=codec))


@both
@pytest.mark.parametrize("codec", CODECS)
def test_conversion(magic: int, codec: CompressionType) -> None:
    """J convertV2ToV1..., shape: none gives an entry a record, a codec one wrapper; offsets and types kept."""
    records = [Record(0, 30, b"a", b"1"), Record(1, 50, None, b"2"), Record(2, 40, b"c", None)]
    batches = read_batches(convert_v2(records, magic=magic, compressor=compressor(codec)))
    assert len(batches) == (3 if codec == NONE else 1)
    read = [record for batch in batches for record in batch.records]
    assert [each[:4] for each in read] == [(each[0], -1 if magic == 0 else each[1], *each[2:4]) for each in records]
    if codec != NONE:
        assert batches[0].max_timestamp == (50 if magic == 1 else -1)


@both
def test_conversion_of_nothing(magic: int) -> None:
    assert [convert_v2([], magic=magic, compressor=compressor(codec)) for codec in CODECS] == [b""] * 4


@pytest.mark.parametrize(("magic", "version"), [(0, 1), (1, 2)])
def test_conversion_of_zstd(magic: int, version: int) -> None:
    """J convertV2ToV1, zstd: cannot be down-converted."""
    with pytest.raises(
        UnsupportedCompressionTypeError,
        match=f"Down-conversion of zstandard-compressed batches is not supported.*up to version {version}",
    ):
        convert_v2([Record(0, 0, None, b"v")], magic=magic, compressor=compressor(ZSTD))


@pytest.mark.parametrize(("magic", "version"), [(0, 1), (1, 2)])
def test_conversion_of_headers(magic: int, version: int) -> None:
    records = [Record(0, 0, None, b"v"), Record(1, 0, None, b"v", (("trace", b"1"),))]
    with pytest.raises(
        IllegalArgumentError, match=f"Magic v{magic} .*Produce up to version {version}.*offset 1 has the header 'trace'"
    ):
        convert_v2(records, magic=magic, compressor=compressor(NONE))


def test_lz4_of_v0_has_the_wrong_checksum() -> None:
    """K testLz4FramingMagicV0 / V1: and both read back."""
    records = [Record(0, 5, b"key", b"value" * 30)]
    frames = [convert_v2(records, magic=magic, compressor=compressor(LZ4)) for magic in MAGICS]
    starts = [frame[frame.index(b"\x04\x22\x4d\x18") :][:7] for frame in frames]
    assert [start[:6].hex() for start in starts] == ["04224d186040"] * 2
    assert starts[0][6] != 0x82 == starts[1][6]
    assert [all_records(frame)[0].value for frame in frames] == [b"value" * 30] * 2


def test_lz4_of_v0_with_the_right_checksum_is_read_too() -> None:
    packed = compressor(LZ4).compress(inner(0, range(2)))
    assert len(all_records(write_message(0, 1, -1, None, packed, attributes=LZ4))) == 2
    broken = convert_v2([Record(0, 5, b"key", b"value")], magic=0, compressor=compressor(LZ4))
    payload = broken[broken.index(b"\x04\x22\x4d\x18") :]
    with pytest.raises(CorruptRecordError, match="lz4"):
        read_batches(write_message(1, 0, 0, None, payload, attributes=LZ4))


@pytest.mark.parametrize(
    ("magic", "codec"),
    [(0, NONE), (0, GZIP), (0, SNAPPY), *((1, codec) for codec in CODECS)],  # the peer has no lz4 for format 0
)
def test_an_independent_reader_agrees(magic: int, codec: CompressionType) -> None:
    """O 5: round trip through an independent decoder."""
    records = [Record(offset, 1000 - offset, b"k%d" % offset, None if offset % 3 else b"v") for offset in range(7, 17)]
    data = convert_v2(records, magic=magic, compressor=compressor(codec))
    seen: list[tuple[Any, ...]] = []
    for batch in read_batches(data):
        peer = PeerBatch(data[: batch.size], magic)
        assert peer.validate_crc()
        seen.extend((each.offset, each.timestamp, each.key, each.value) for each in peer)
        data = data[batch.size :]
    assert seen == [(each.offset, None if magic == 0 else each.timestamp, each.key, each.value) for each in records]


def outcome(data: bytes) -> list[Batch] | KafkaError:
    try:
        return read_batches(data, limit=100_000)
    except (CorruptRecordError, InvalidRecordError) as error:
        return error


@settings(max_examples=examples(400))
@given(st.sampled_from(MAGICS), st.integers(0, 15), st.binary(max_size=60))
def test_signed_nonsense(magic: int, attributes: int, fields: bytes) -> None:
    result = outcome(signed(magic, fields, attributes))
    assert isinstance(result, KafkaError) or result[0].count > 0


@settings(max_examples=examples(300))
@given(st.sampled_from(MAGICS), st.sampled_from(CODECS[1:]), st.binary(max_size=80), st.integers(0, 3))
def test_nonsense_inside_a_wrapper(magic: int, codec: CompressionType, content: bytes, good: int) -> None:
    data = wrapper(magic, [*inner(magic, range(good)), content], 100, codec=codec)
    result = outcome(data)
    assert isinstance(result, KafkaError) or (result[0].count >= good and not content)
