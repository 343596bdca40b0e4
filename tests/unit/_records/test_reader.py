from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay._records.batch_v2 import append_record, batch_header, checksum
from forebay._records.compression import CompressionType, compressor
from forebay._records.decoded import Batch, ControlType, EndTransactionMarker, Record, TimestampType
from forebay._records.reader import next_batch_size, read_batches, read_records
from forebay.errors import CorruptRecordError, InvalidRecordError, KafkaError
from tests.support.examples import examples
from tests.support.produced import read_varint
from tests.support.records_builder import BatchHead, RecordsBuilder
from tests.unit._records.goldens import V2_GOLDENS, V2_LZ4, V2_NONE, V2_ONE, V2_TRANSACTIONAL

CODECS = list(CompressionType)
MAX = 2**31 - 1


def resign(batch: bytes, **changes: tuple[int, str, int]) -> bytes:
    """``batch`` with fields (offset, struct code, value) changed and the checksum made right again."""
    data = bytearray(batch)
    for at, code, value in changes.values():
        struct.pack_into(">" + code, data, at, value)
    struct.pack_into(">I", data, 17, checksum(data[21:]))
    return bytes(data)


def build(codec: CompressionType = CompressionType.NONE, head: BatchHead | None = None) -> bytes:
    builder = RecordsBuilder(head or BatchHead(base_offset=1234567), compressor(codec))
    builder.append_next(1, b"a", b"v")
    builder.append_next(2, b"b", b"v")
    builder.append_next(3, b"c", b"v")
    return builder.build()


def record(body: bytes) -> bytes:
    """One record in whose body the caller may lie; the length prefix is right."""
    assert len(body) < 64
    return bytes([2 * len(body)]) + body


def numbers(*values: int) -> bytes:
    """One-byte zig-zag numbers."""
    return bytes(value * 2 if value >= 0 else -value * 2 - 1 for value in values)


# ---- goldens


def test_golden_of_one_record() -> None:
    """A7."""
    (batch,) = read_batches(V2_ONE)
    assert batch.records == (Record(0, 0, b"key", b"value", (), -1, 15),)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (-1, -1, -1, -1)
    assert (batch.size, batch.payload_size, batch.crc, batch.codec) == (76, 15, 0x1C077701, CompressionType.NONE)


def test_golden_of_a_transactional_batch() -> None:
    """A8."""
    (batch,) = read_batches(V2_TRANSACTIONAL)
    assert batch.records == (
        Record(0, 1000, b"a", b"1", (), 7, 9),
        Record(1, 1005, None, b"2", (("h", b"v"), ("n", None)), 8, 15),
        Record(2, 999, b"", None, (), 9, 7),
    )
    assert batch.is_transactional and not batch.is_control
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (13131, 1, 7, 9)
    assert (batch.base_timestamp, batch.max_timestamp) == (1000, 1005)


@pytest.mark.parametrize(("data", "crc"), [(V2_NONE, 3851219455), (V2_LZ4, 2745969314)])
def test_goldens_of_java(data: bytes, crc: int) -> None:
    """J MemoryRecordsTest.testChecksum, v2 none and lz4."""
    (batch,) = read_batches(data)
    assert batch.crc == crc
    assert [each[:4] for each in batch.records] == [(0, 283843, b"key1", b"value1"), (1, 1234, b"key2", b"value2")]


def test_several_batches_of_several_formats() -> None:
    """J testIterator: offsets, sequences and sizes hold over mixed batches, read twice alike."""
    head = BatchHead(producer_id=134234, producer_epoch=28, base_sequence=777, leader_epoch=998, base_offset=57)
    data = V2_ONE + build(CompressionType.GZIP, head) + build(head=BatchHead(magic=0)) + V2_LZ4
    batches = read_batches(data)
    assert batches == read_batches(memoryview(data))
    assert [batch.magic for batch in batches] == [2, 2, 0, 0, 0, 2]
    assert [batch.base_offset for batch in batches] == [0, 57, 0, 1, 2, 0]
    assert [(each.offset, each.sequence) for each in batches[1].records] == [(57, 777), (58, 778), (59, 779)]
    assert (batches[1].leader_epoch, batches[1].producer_id, batches[1].last_sequence) == (998, 134234, 779)
    assert [batch.timestamp_type for batch in batches[2:]] == [TimestampType.NONE] * 3 + [TimestampType.CREATE_TIME]
    assert sum(batch.size for batch in batches) == len(data)


# ---- DefaultRecordTest


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        (b"hi", b"there", ()),
        (None, b"there", ()),
        (b"hi", None, ()),
        (None, None, ()),
        (b"hi", b"there", (("foo", b"value"), ("bar", None), ("üñï", b"x"))),
    ],
)
def test_serde(key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...]) -> None:
    """J testBasicSerde: offset 47, sequence 733, timestamp base+323; size as computed."""
    section = bytearray()
    size = append_record(section, 323, 10, key, value, headers)
    (read,) = read_records(bytes(section), count=1, base_offset=37, base_timestamp=1000, base_sequence=723)
    assert read == Record(47, 1323, key, value, headers, 733, size)


def test_no_sequence() -> None:
    """J testSerdeNoSequence."""
    section = bytearray()
    append_record(section, 0, 10, b"hi", b"there")
    assert read_records(bytes(section), count=1, base_offset=37)[0].sequence == -1


@pytest.mark.parametrize("count", [8, 4])
def test_wrong_header_count(count: int) -> None:
    """J testBasicSerdeInvalidHeaderCountTooHigh / TooLow: byte 14 says 4 or 2 headers of 3."""
    section = bytearray()
    append_record(section, 323, 10, b"hi", b"there", [("foo", b"value"), ("bar", None), ("x", b"y")])
    assert section[14] == 6
    section[14] = count
    with pytest.raises(InvalidRecordError, match="record 0"):
        read_records(bytes(section), count=1)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(numbers(0, 0, 0) + b"\xd2\x01" + bytes(20), id="testInvalidKeySize"),
        pytest.param(numbers(0, 0, 0) + b"\xd2\x01", id="testInvalidKeySizePartial"),
        pytest.param(numbers(0, 0, 0, -1) + b"\xd2\x01" + bytes(20), id="testInvalidValueSize"),
        pytest.param(numbers(0, 0, 0, -1) + b"\xd2\x01", id="testInvalidValueSizePartial"),
        pytest.param(numbers(0, 0, 0, -1, -1, -1), id="testInvalidNumHeaders"),
        pytest.param(numbers(0, 0, 0, -1, -1) + b"\xc8\x01" + bytes(20), id="testInvalidNumHeadersPartial"),
        pytest.param(numbers(0, 0, 0, -1, -1, 1) + b"\xd2\x01" + bytes(20), id="testInvalidHeaderKey"),
        pytest.param(numbers(0, 0, 0, -1, -1, 1) + b"\xd2\x01", id="testInvalidHeaderKeyPartial"),
        pytest.param(numbers(0, 0, 0, -1, -1, 1, -1, 0), id="testNullHeaderKey"),
        pytest.param(numbers(0, 0, 0, -1, -1, 1, -1), id="testNullHeaderKeyPartial"),
        pytest.param(numbers(0, 0, 0, -1, -1, 1, 1) + b"a\xd2\x01" + bytes(9), id="testInvalidHeaderValue"),
        pytest.param(numbers(0, 0, 0, -1, -1, 1, 1) + b"a\xd2\x01", id="testInvalidHeaderValuePartial"),
        pytest.param(b"\0" + b"\xff" * 6, id="testUnderflowReadingTimestamp"),
        pytest.param(b"\0\0" + b"\xff" * 5, id="testUnderflowReadingVarlong"),
        pytest.param(b"\0" + b"\xff" * 10 + b"\x01" + numbers(0, -1, -1, 0), id="testInvalidVarlong"),
        pytest.param(numbers(0, 0, -1, -1, -1, 0), id="negative offset delta"),
        pytest.param(numbers(0, 0, 0, -2, -1, 0), id="key length below -1"),
        pytest.param(numbers(0, 0, 0, -1, -1, 0, 0), id="bytes left in the body"),
        pytest.param(numbers(0, 0, 0, -1, -1, 1, 1) + b"\xff" + numbers(0), id="header key not UTF-8"),
    ],
)
def test_malformed_record(body: bytes) -> None:
    """J DefaultRecordTest: testInvalid{KeySize,ValueSize,HeaderKey,HeaderValue,NumHeaders,Varlong} + Partial."""
    with pytest.raises(InvalidRecordError, match="record (0|count)"):
        read_records(record(body), count=1)


@pytest.mark.parametrize("size", [b"\xd2\x01", b"\x02", b"\x01", b"\xff\xff\xff\xff\xff\x01", b"\xff"])
def test_invalid_size_of_body(size: bytes) -> None:
    """J testInvalidSizeOfBodyInBytes: 105 in less, 1, negative, over-long, cut short."""
    with pytest.raises(InvalidRecordError, match="record (0|count)"):
        read_records(size + numbers(0, 0, 0, -1, -1, 0), count=1)


# ---- DefaultRecordBatchTest


def test_fields_of_a_header() -> None:
    """J buildDefaultRecordBatch: offsets, largest timestamp, nothing of a producer."""
    (batch,) = read_batches(build())
    assert (batch.base_offset, batch.last_offset, batch.max_timestamp, batch.count) == (1234567, 1234569, 3, 3)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert (batch.timestamp_type, batch.delete_horizon_ms) == (TimestampType.CREATE_TIME, None)


def test_with_producer_id() -> None:
    """J buildDefaultRecordBatchWithProducerId, testWriteEmptyHeader: last sequence 983 + 1."""
    data = resign(build(), pid=(43, "q", 23423), epoch=(51, "h", 145), sequence=(53, "i", 983), last=(23, "i", 22))
    (batch,) = read_batches(data)
    assert (batch.producer_id, batch.producer_epoch, batch.last_sequence) == (23423, 145, 983 + 22)
    assert [each.sequence for each in batch.records] == [983, 984, 985]


def test_sequences_wrap_around() -> None:
    """J buildDefaultRecordBatchWithSequenceWrapAround."""
    (batch,) = read_batches(resign(build(), sequence=(53, "i", MAX - 1)))
    assert [each.sequence for each in batch.records] == [MAX - 1, MAX, 0]
    assert batch.last_sequence == 0


@pytest.mark.parametrize("codec", CODECS)
def test_invalid_size_and_checksum(codec: CompressionType) -> None:
    """J testInvalidRecordSize (length 10), testInvalidCrc (last offset delta 23)."""
    data = bytearray(build(codec))
    struct.pack_into(">i", data, 8, 10)
    with pytest.raises(CorruptRecordError, match="size 10 is below the minimum"):
        read_batches(data)
    struct.pack_into(">i", data, 8, 40)
    with pytest.raises(CorruptRecordError, match="52 bytes are less than a header"):
        read_batches(data)
    data = bytearray(build(codec))
    struct.pack_into(">i", data, 23, 23)
    with pytest.raises(CorruptRecordError, match="checksum"):
        read_batches(data)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [5, 2, 0, -1, MAX])
def test_invalid_record_count(codec: CompressionType, count: int) -> None:
    """J testInvalidRecordCount{TooMany,TooLittle}{Non,}Compressed: 3 real ones."""
    with pytest.raises(InvalidRecordError, match="record"):
        read_batches(resign(build(codec), count=(57, "i", count)))


def test_what_lies_outside_of_the_checksum() -> None:
    """J testSetLastOffset (500 -> base 498), testSetPartitionLeaderEpoch (500): brokers change them without signing."""
    data = bytearray(build())
    struct.pack_into(">q", data, 0, 498)
    struct.pack_into(">i", data, 12, 500)
    (batch,) = read_batches(data)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (498, 500, 500)
    assert [each.offset for each in batch.records] == [498, 499, 500]


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time(codec: CompressionType) -> None:
    """J testSetLogAppendTime: 15 for all records."""
    (batch,) = read_batches(resign(build(codec), attributes=(21, "h", 8 | codec), latest=(35, "q", 15)))
    assert batch.timestamp_type == TimestampType.LOG_APPEND_TIME
    assert [each.timestamp for each in batch.records] == [15, 15, 15]


def test_delete_horizon() -> None:
    """J testRecordTimestampsWithDeleteHorizon: kept in the base timestamp, which deltas refer to as ever."""
    builder = RecordsBuilder(BatchHead(delete_horizon_ms=100), compressor(CompressionType.NONE))
    for timestamp in (50, 100, 150):
        builder.append_next(timestamp, b"k", None)
    (batch,) = read_batches(builder.build())
    assert batch.delete_horizon_ms == 100
    assert [each.timestamp for each in batch.records] == [50, 100, 150]


@pytest.mark.parametrize("codec", CODECS)
def test_sizes_of_records(codec: CompressionType) -> None:
    """J testSkipKeyValueIteratorCorrectness, testStreamingIteratorConsistency: sizes, offsets and timestamps."""
    records = [
        (1, b"a", b"1", ()),
        (2, b"b", None, ()),
        (3, None, b"3", ()),
        (4, None, None, ()),
        (1000, b"abc", bytes(204800), ()),
        (9999, b"abc", b"0", (("k1", b"v1"), ("k2", None))),
    ]
    builder = RecordsBuilder(BatchHead(), compressor(codec))
    for each in records:
        builder.append_next(*each)
    (batch,) = read_batches(builder.build())
    assert [each.size for each in batch.records] == [9, 8, 8, 7, 15 + 204800, 23]
    assert [(each.offset, each.timestamp) for each in batch.records] == list(enumerate([1, 2, 3, 4, 1000, 9999]))


def test_precomputed_size() -> None:
    """J testSizeInBytes: 4 records, headers foo and bar=null; the computed size is what is written."""
    builder = RecordsBuilder(BatchHead(), compressor(CompressionType.NONE))
    for add, key, value, headers in (
        (0, b"foo", b"1", ()),
        (30000, b"bar", None, ()),
        (60000, None, b"x", (("foo", b"value"), ("bar", None))),
        (60000, b"k", b"v", (("foo", b"value"), ("bar", None))),
    ):
        builder.append_next(1700000000000 + add, key, value, headers)
    assert builder.estimated_size == len(builder.build())


def test_control_batch() -> None:
    """J testReadAndWriteControlBatch: a commit marker with coordinator epoch 15."""
    head = BatchHead(producer_id=1, producer_epoch=0, transactional=True, control=True)
    builder = RecordsBuilder(head, compressor(CompressionType.NONE))
    builder.append_end_transaction(7, EndTransactionMarker(ControlType.COMMIT, 15))
    (batch,) = read_batches(builder.build())
    assert batch.is_control and batch.is_transactional
    assert EndTransactionMarker.parse(batch.records[0]) == EndTransactionMarker(ControlType.COMMIT, 15)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0" * 6),
        (b"\0\0\0\1", None),
        (b"\0\0\0", b"\0" * 6),
        (b"\0\0\0\1", b"\0" * 5),
        (b"\0\0\0\7", b"\0" * 6),
    ],
)
def test_malformed_control_record(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(InvalidRecordError, match="control record at offset 5"):
        EndTransactionMarker.parse(Record(5, 0, key, value))


# ---- entries


def test_incomplete_entries() -> None:
    """J iteratorIgnoresIncompleteEntries: left out of a fetch response, refused elsewhere."""
    data = V2_ONE + V2_NONE[:-5]
    assert [batch.size for batch in read_batches(data, partial=True)] == [76]
    assert [batch.size for batch in read_batches(V2_ONE + V2_NONE[:9], partial=True)] == [76]
    with pytest.raises(CorruptRecordError, match="batch at byte 76 is cut short: 97 bytes wanted, 92 left"):
        read_batches(data)
    with pytest.raises(CorruptRecordError, match="more than its header wanted, 3 left"):
        read_batches(V2_ONE + b"abc")


def test_raises_on_wrong_entries() -> None:
    """J raisesOnTooSmallRecords (9), InvalidMagic (37), TooLargeRecords (limit 60): also with partial."""
    too_small = V2_ONE[:8] + struct.pack(">i", 9) + V2_ONE[12:]
    unknown = V2_ONE[:16] + bytes([37]) + V2_ONE[17:]
    for data, match in ((too_small, "size 9 is below the minimum of 14"), (unknown, "magic number 37 is unknown")):
        with pytest.raises(CorruptRecordError, match=match):
            read_batches(data, partial=True)
    with pytest.raises(CorruptRecordError, match="size 64 is over the limit of 60"):
        read_batches(V2_ONE, max_size=60)
    assert read_batches(V2_ONE, max_size=64)


def test_size_of_the_next_batch() -> None:
    """J testNextBatchSize: readable once 17 bytes, up to the magic number, are there."""
    assert [next_batch_size(V2_ONE[:size]) for size in (0, 11, 12, 16)] == [None] * 4
    assert next_batch_size(V2_ONE[:17]) == 76
    assert next_batch_size(b"abc" + V2_ONE, 3) == 76


def test_unknown_codec() -> None:
    with pytest.raises(InvalidRecordError, match="compression codec 5 is unknown"):
        read_batches(resign(V2_ONE, attributes=(21, "h", 5)))


def test_damaged_compression() -> None:
    data = bytearray(build(CompressionType.ZSTD))
    data[65] ^= 0xFF
    with pytest.raises(CorruptRecordError):
        read_batches(resign(bytes(data)))


def test_limit() -> None:
    builder = RecordsBuilder(BatchHead(), compressor(CompressionType.ZSTD))
    builder.append_next(0, None, bytes(1_000_000))
    assert read_batches(builder.build(), limit=1_000_020)
    with pytest.raises(CorruptRecordError, match="limit of 1000000 bytes"):
        read_batches(builder.build(), limit=1_000_000)


@pytest.mark.parametrize(
    ("deltas", "last"), [((1, 1), 1), ((2, 1), 2), ((0, 5), 4)], ids=["twice", "descending", "beyond the last"]
)
def test_offset_deltas_must_ascend(deltas: tuple[int, int], last: int) -> None:
    section = bytearray()
    for delta in deltas:
        append_record(section, 0, delta, None, None)
    header = batch_header(payload=[section], attributes=0, record_count=2, base_timestamp=0, max_timestamp=0)
    with pytest.raises(InvalidRecordError, match="record 1 .*offset delta"):
        read_batches(resign(bytes(header + section), last=(23, "i", last)))


def test_timestamps_add_up_modulo_64_bits() -> None:
    section = bytearray()
    append_record(section, -(2**63), 0, None, None)
    assert read_records(bytes(section), count=1, base_timestamp=-1)[0].timestamp == 2**63 - 1


def test_position_of_a_varint() -> None:
    assert read_varint(b"xx\x80\x01yy", 2) == (64, 4)


# ---- hostile bytes


def outcome(data: bytes) -> list[Batch] | KafkaError:
    try:
        return read_batches(data, limit=100_000)
    except (CorruptRecordError, InvalidRecordError) as error:
        return error


@pytest.mark.parametrize("name", V2_GOLDENS)
def test_one_wrong_byte_is_always_found(name: str) -> None:
    """J LegacyRecordTest.testChecksum for v2: any byte after the checksum, and the sizes and magic before it."""
    golden = V2_GOLDENS[name]
    for at in range(8, len(golden)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = golden[:at] + bytes([golden[at] ^ flip]) + golden[at + 1 :]
            if 12 <= at < 16:  # the leader epoch is not signed
                assert isinstance(outcome(damaged), list)
            else:
                assert isinstance(outcome(damaged), KafkaError), (at, flip)


@settings(max_examples=examples(500))
@given(st.sampled_from(sorted(V2_GOLDENS)), st.integers(21, 111), st.integers(0, 255), st.integers(0, 111))
def test_signed_nonsense(name: str, at: int, byte: int, shorter: int) -> None:
    golden = V2_GOLDENS[name]
    data = bytearray(golden[: max(61, len(golden) - shorter // 8)])
    data[at % len(data)] = byte
    struct.pack_into(">i", data, 8, len(data) - 12)
    data[16] = 2
    result = outcome(resign(bytes(data)))
    assert isinstance(result, KafkaError) or sum(batch.size for batch in result) == len(data)


@settings(max_examples=examples(500))
@given(st.binary(max_size=150), st.sampled_from([b"", V2_ONE[:17], V2_ONE[:61], V2_ONE]))
def test_any_bytes(tail: bytes, start: bytes) -> None:
    result = outcome(start + tail)
    assert isinstance(result, KafkaError) or sum(batch.size for batch in result) == len(start + tail)


@settings(max_examples=examples(500))
@given(st.binary(max_size=80), st.integers(-2, 12))
def test_any_records_section(section: bytes, count: int) -> None:
    try:
        records = read_records(section, count=count)
    except InvalidRecordError as error:
        assert str(error)
    else:
        assert len(records) == count
        assert sum(each.size for each in records) == len(section)
