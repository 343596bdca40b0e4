from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._records.compression import CompressionType, compressor
from forebay._records.decoded import ControlType, EndTransactionMarker, TimestampType
from forebay._records.layout import BATCH_OVERHEAD
from forebay._records.reader import read_batches
from forebay.errors import IllegalArgumentError, IllegalStateError
from tests.support.records_builder import BatchHead, RecordsBuilder
from tests.unit._records.goldens import CHECKSUMS, V0_MESSAGE, V1_MESSAGE, V2_LZ4, V2_NONE

NONE, ZSTD = CompressionType.NONE, CompressionType.ZSTD
FORMATS = [
    (magic, codec) for magic, codec in itertools.product((0, 1, 2), CompressionType) if codec != ZSTD or magic == 2
]
every_format = pytest.mark.parametrize(("magic", "codec"), FORMATS)
OVERHEAD = {0: 14, 1: 22}
COMMIT = EndTransactionMarker(ControlType.COMMIT, 15)


def new(magic: int = 2, codec: CompressionType = NONE, *, limit: int = 1024, ratio: float = 1.0) -> RecordsBuilder:
    return RecordsBuilder(BatchHead(magic=magic), compressor(codec), write_limit=limit, estimated_ratio=ratio)


def headed(codec: CompressionType = NONE, **fields: Any) -> RecordsBuilder:
    return RecordsBuilder(BatchHead(**fields), compressor(codec))


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_below_v2(magic: int) -> None:
    """J testUnsupportedCompress."""
    with pytest.raises(IllegalArgumentError, match=f"ZStandard compression is not supported for magic {magic}"):
        new(magic, ZSTD)


@every_format
def test_empty(magic: int, codec: CompressionType) -> None:
    """J testWriteEmptyRecordSet: no bytes."""
    assert new(magic, codec).build() == b""


@every_format
def test_transactional(magic: int, codec: CompressionType) -> None:
    """J testWriteTransactionalRecordSet: pid 9809, epoch 15, sequence 2342; not below format 2."""
    fields = {"magic": magic, "producer_id": 9809, "producer_epoch": 15, "base_sequence": 2342, "transactional": True}
    if magic < 2:
        with pytest.raises(IllegalArgumentError, match=f"Transactional records not supported for magic {magic}"):
            headed(codec, **fields)
        return
    builder = headed(codec, **fields)
    builder.append(0, 1, b"foo", b"bar")
    (batch,) = read_batches(builder.build())
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9809, 15, 2342)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"producer_id": -1, "transactional": True}, "transactional messages without a valid producer ID"),
        ({"producer_id": 9809, "producer_epoch": -1, "base_sequence": 0}, "Invalid negative producer epoch -1"),
        ({"producer_id": 9809, "producer_epoch": 15, "base_sequence": -1}, "Invalid negative sequence number -1"),
        (
            {"magic": 1, "producer_id": 9809, "producer_epoch": 15, "base_sequence": 0},
            "Idempotent messages are not supported for magic 1",
        ),
    ],
)
def test_producer_state_is_checked_on_close(fields: dict[str, Any], match: str) -> None:
    """J testWriteTransactionalWithInvalidPID, testWriteIdempotentWithInvalidEpoch / BaseSequence."""
    builder = headed(**fields)
    builder.append(0, 1, b"foo", b"bar")
    with pytest.raises(IllegalArgumentError, match=match):
        builder.close()


@pytest.mark.parametrize("fields", [{"control": True}, {"delete_horizon_ms": 5}])
def test_what_old_formats_have_no_place_for(fields: dict[str, Any]) -> None:
    with pytest.raises(IllegalArgumentError, match="not supported for magic 1"):
        headed(magic=1, **fields)


def test_unknown_formats() -> None:
    with pytest.raises(IllegalArgumentError, match="magic number 3"):
        headed(magic=3)
    with pytest.raises(IllegalArgumentError, match="TimestampType must be set for magic 2"):
        headed(timestamp_type=TimestampType.NONE)


def test_control_records_are_apart() -> None:
    """J testWriteEndTxnMarkerNonTransactionalBatch, NonControlBatch; ordinary records not in a control batch."""
    with pytest.raises(IllegalArgumentError, match="only be appended to control batches"):
        headed(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True).append_end_transaction(0, COMMIT)
    with pytest.raises(IllegalArgumentError, match="needs a transactional batch"):
        headed(producer_id=1, producer_epoch=0, control=True).append_end_transaction(0, COMMIT)
    control = headed(producer_id=1, producer_epoch=0, transactional=True, control=True)
    with pytest.raises(IllegalArgumentError, match="only be appended to control batches"):
        control.append(0, 0, b"k", b"v")
    control.append_end_transaction(0, COMMIT)
    assert read_batches(control.build())[0].records[0].key == b"\0\0\0\1"


@every_format
def test_compression_rate(magic: int, codec: CompressionType) -> None:
    """J testLegacyCompressionRate: built size less overhead by uncompressed size; 1.0 for none."""
    builder = new(magic, codec)
    for index in range(3):
        builder.append(index, index, b"key", b"value")
    built = builder.build()
    if codec == NONE:
        assert builder.compression_ratio == 1.0
        return
    overhead = BATCH_OVERHEAD if magic == 2 else 12 + OVERHEAD[magic]
    uncompressed = 3 * 15 if magic == 2 else 3 * (12 + OVERHEAD[magic] + 8)
    assert builder.uncompressed_size == uncompressed
    assert builder.compression_ratio == pytest.approx((len(built) - overhead) / uncompressed, abs=1e-5)


@every_format
def test_estimated_size(magic: int, codec: CompressionType) -> None:
    """J testEstimatedSizeInBytes: grows with each record, exact once built, for none exact before."""
    builder = new(magic, codec)
    sizes = [builder.estimated_size]
    for index in range(10):
        builder.append(index, 0, None, str(index).encode())
        sizes.append(builder.estimated_size)
    assert sizes == sorted(set(sizes))
    built = builder.build()
    assert builder.estimated_size == len(built)
    assert codec != NONE or sizes[-1] == len(built)


@every_format
def test_create_time(magic: int, codec: CompressionType) -> None:
    """J buildUsingCreateTime: timestamps 0, 2, 1 kept; largest 2; its shallow offset."""
    builder = new(magic, codec)
    for index, timestamp in enumerate((0, 2, 1)):
        builder.append(index, timestamp, b"a", str(index).encode())
    batches = read_batches(builder.build())
    assert builder.max_timestamp == (-1 if magic == 0 else 2)
    assert builder.shallow_offset_of_max_timestamp == (-1 if magic == 0 else 1 if (magic, codec) == (1, NONE) else 2)
    records = [record for batch in batches for record in batch.records]
    assert [record.offset for record in records] == [0, 1, 2]
    assert [record.timestamp for record in records] == ([-1] * 3 if magic == 0 else [0, 2, 1])
    assert {batch.timestamp_type for batch in batches} == {
        TimestampType.NONE if magic == 0 else TimestampType.CREATE_TIME
    }


@every_format
def test_log_append_time(magic: int, codec: CompressionType) -> None:
    """J buildUsingLogAppendTime: the broker's time for every record."""
    if magic == 0:
        assert headed(codec, magic=0, timestamp_type=TimestampType.NONE).max_timestamp == -1
        return
    builder = headed(codec, magic=magic, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=777)
    for index, timestamp in enumerate((0, 2, 1)):
        builder.append(index, timestamp, b"a", b"1")
    batches = read_batches(builder.build())
    assert builder.max_timestamp == 777
    assert builder.shallow_offset_of_max_timestamp == (0 if (magic, codec) == (1, NONE) else 2)
    assert [record.timestamp for batch in batches for record in batch.records] == [777] * 3
    assert {batch.timestamp_type for batch in batches} == {TimestampType.LOG_APPEND_TIME}


@every_format
def test_one_record(magic: int, codec: CompressionType) -> None:
    """J testAppendedChecksumConsistency: round trip of every combination of null and not."""
    for key, value in itertools.product((None, b"", b"key", b"\1" * 1000), repeat=2):
        builder = new(magic, codec)
        builder.append(0, 0, key, value)
        ((record,),) = [batch.records for batch in read_batches(builder.build())]
        assert (record.offset, record.key, record.value) == (0, key, value)


@every_format
def test_small_write_limit(magic: int, codec: CompressionType) -> None:
    """J testSmallWriteLimit: the first record always has room."""
    builder = new(magic, codec, limit=0)
    assert not builder.is_full
    assert builder.has_room_for(0, b"foo", b"bar")
    builder.append(0, 0, b"foo", b"bar")
    assert builder.is_full
    assert not builder.has_room_for(0, b"foo", b"bar")
    assert [batch.count for batch in read_batches(builder.build())] == [1]


@every_format
def test_past_the_limit(magic: int, codec: CompressionType) -> None:
    """J writePastLimit: no room after two records of 64 bytes, a third is taken all the same."""
    builder = new(magic, codec, limit=64, ratio=0.5)
    for index in range(3):
        builder.append(index, index, b"a", str(index).encode())
        if index == 1:
            assert not builder.has_room_for(2, b"a", b"2")
    records = [record for batch in read_batches(builder.build()) for record in batch.records]
    assert len(records) == 3
    assert builder.max_timestamp == (-1 if magic == 0 else 2)


@every_format
def test_offsets_must_ascend(magic: int, codec: CompressionType) -> None:
    """J testAppendAtInvalidOffset: the same offset twice."""
    builder = new(magic, codec)
    builder.append(5, 0, b"a", b"b")
    for offset in (5, 4):
        with pytest.raises(IllegalArgumentError, match=f"Illegal offset {offset} following previous offset 5"):
            builder.append(offset, 0, b"a", b"b")
    with pytest.raises(IllegalArgumentError, match="below the batch's base offset 9"):
        headed(codec, magic=magic, base_offset=9).append(8, 0, None, None)
    builder.append(7, 0, b"a", b"b")
    assert [each.offset for batch in read_batches(builder.build()) for each in batch.records] == [5, 7]
    assert builder.count == 2


def test_offsets_must_fit_their_delta() -> None:
    with pytest.raises(IllegalArgumentError, match="2147483647 above the base offset"):
        new().append(2**31, 0, None, None)


@every_format
def test_negative_timestamps(magic: int, codec: CompressionType) -> None:
    builder = new(magic, codec)
    with pytest.raises(IllegalArgumentError, match="Invalid negative timestamp -2"):
        builder.append(0, -2, None, b"v")
    builder.append(0, -1, None, b"v")
    assert read_batches(builder.build())[0].records[0].timestamp == -1


@pytest.mark.parametrize("magic", [0, 1])
def test_headers_below_v2(magic: int) -> None:
    builder = new(magic)
    with pytest.raises(IllegalArgumentError, match=f"Magic v{magic} does not support record headers"):
        builder.append(0, 0, None, b"v", [("h", b"v")])
    assert builder.build() == b""


@every_format
def test_aborted(magic: int, codec: CompressionType) -> None:
    """J shouldThrowIllegalStateExceptionOn{Build,Close,Append}WhenAborted; an aborted builder keeps nothing."""
    builder = new(magic, codec)
    builder.append(0, 0, b"a", b"1")
    builder.abort()
    with pytest.raises(IllegalStateError, match="build an aborted"):
        builder.build()
    with pytest.raises(IllegalStateError, match="already been aborted"):
        builder.close()
    with pytest.raises(IllegalStateError, match="has been aborted"):
        builder.append(1, 0, b"a", b"1")


@every_format
def test_closed(magic: int, codec: CompressionType) -> None:
    """J shouldThrowIllegalStateExceptionOnAppendWhenClosed; building again gives the same bytes."""
    builder = new(magic, codec)
    builder.append(0, 0, b"a", b"1")
    builder.close_for_appends()
    with pytest.raises(
        IllegalStateError, match="Tried to append a record, but RecordsBuilder is closed for record appends"
    ):
        builder.append(1, 0, b"a", b"1")
    assert builder.is_full
    assert builder.build() is builder.build()


@every_format
def test_has_room(magic: int, codec: CompressionType) -> None:
    """J testHasRoomForMethod: room for another in 1024 bytes, none once closed."""
    builder = new(magic, codec)
    builder.append(0, 0, b"a", b"1")
    assert builder.has_room_for(1, b"b", b"2")
    builder.close()
    assert not builder.has_room_for(1, b"b", b"2")


@every_format
def test_has_room_with_headers(magic: int, codec: CompressionType) -> None:
    """J testHasRoomForMethodWithHeaders: 120 bytes; ten headers do not fit, and do not count below format 2."""
    builder = new(magic, codec, limit=120)
    builder.append(0, 1, b"key", b"value")
    assert builder.has_room_for(1, b"key", b"value")
    assert builder.has_room_for(1, b"key", b"value", [("hello", b"world.world")] * 10) == (magic < 2)


@pytest.mark.parametrize(("magic", "name"), CHECKSUMS)
def test_goldens(magic: int, name: str) -> None:
    """J MemoryRecordsTest.testChecksum: first shallow message or batch, byte for byte where an encoder stores raw."""
    builder = new(magic, CompressionType.of(name))
    builder.append_next(283843, b"key1", b"value1")
    builder.append_next(1234, b"key2", b"value2")
    built = builder.build()
    assert read_batches(built)[0].crc == CHECKSUMS[magic, name]
    whole = {(0, "none"): V0_MESSAGE, (1, "none"): V1_MESSAGE, (2, "none"): V2_NONE, (2, "lz4"): V2_LZ4}
    expected = whole.get((magic, name))
    if expected is not None:
        assert built[0 if magic == 2 else 12 :].startswith(expected)


@every_format
def test_with_records(magic: int, codec: CompressionType) -> None:
    """J testWithRecords."""
    builder = new(magic, codec)
    builder.append_next(10, b"key1", b"value1")
    records = [record for batch in read_batches(builder.build()) for record in batch.records]
    assert [(record.key, record.value) for record in records] == [(b"key1", b"value1")]


def test_offsets_with_gaps() -> None:
    builder = headed(CompressionType.GZIP, base_offset=100, producer_id=1, producer_epoch=0, base_sequence=0)
    builder.append(100, 0, None, b"a")
    builder.append(150, 0, None, b"b")
    (batch,) = read_batches(builder.build())
    assert (batch.last_offset, batch.count, batch.last_sequence) == (150, 2, 50)
    assert [record.sequence for record in batch.records] == [0, 50]


@given(
    st.sampled_from(FORMATS),
    st.lists(
        st.tuples(st.integers(-1, 2**63 - 1), st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=20)),
        max_size=8,
    ),
    st.integers(0, 2**40),
)
def test_round_trip(
    form: tuple[int, CompressionType], records: list[tuple[int, bytes | None, bytes | None]], base: int
) -> None:
    magic, codec = form
    builder = headed(codec, magic=magic, base_offset=base)
    for timestamp, key, value in records:
        builder.append_next(timestamp, key, value)
    read = [each for batch in read_batches(builder.build()) for each in batch.records]
    assert [each.offset for each in read] == list(range(base, base + len(records)))
    assert [(each.key, each.value) for each in read] == [each[1:] for each in records]
    assert [each.timestamp for each in read] == [-1 if magic == 0 else each[0] for each in records]
