"""The v2 writer, judged by goldens, by the strict reader, by aiokafka's reader, and by its own interpreted form."""

from __future__ import annotations

import struct
from collections import deque
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as PeerBatch
from hypothesis import given
from hypothesis import strategies as st

from forebay._records import batch_v2
from forebay._records.layout import BATCH_OVERHEAD, MAX_RECORD_OVERHEAD, wrap64
from forebay._records.reader import read_batches
from forebay.errors import InvalidRecordError
from tests.support.forms import as_python
from tests.support.produced import check_produced
from tests.unit._records.goldens import V2_ONE, V2_TRANSACTIONAL, fields, headers, section_of, timestamps

INTERPRETED = as_python("_records.batch_v2")


@pytest.fixture(params=[batch_v2, INTERPRETED], ids=["installed", "interpreted"])
def writer(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


@pytest.mark.parametrize(("key", "value", "size"), [(3, 5, 15), (-1, 5, 12), (-1, 1024, 1033)])
def test_record_sizes(writer: ModuleType, key: int, value: int, size: int) -> None:
    """A6: exact sizes of records without headers."""
    assert writer.exact_record_size(0, 0, key, value) == size
    out = bytearray(b"before")
    written = writer.append_record(out, 0, 0, None if key < 0 else bytes(key), None if value < 0 else bytes(value))
    assert written == size == len(out) - len(b"before")


def test_upper_bound() -> None:
    """A6: 61 + 21 + key + value for key 3 and value 5."""
    assert BATCH_OVERHEAD + MAX_RECORD_OVERHEAD + 3 + 5 == 90


def test_golden_of_one_record(writer: ModuleType) -> None:
    """A7: key "key", value "value", timestamp 0, 76 bytes."""
    records = bytearray()
    writer.append_record(records, 0, 0, b"key", b"value")
    header = writer.batch_header(payload=[records], attributes=0, record_count=1, base_timestamp=0, max_timestamp=0)
    assert header + records == V2_ONE


def test_golden_of_a_transactional_batch(writer: ModuleType) -> None:
    """A8: producer id, headers, nulls and a negative timestamp delta."""
    pieces = [bytearray(), bytearray(), bytearray()]
    writer.append_record(pieces[0], 0, 0, b"a", b"1")
    writer.append_record(pieces[1], 5, 1, None, b"2", [("h", b"v"), ("n", None)])
    writer.append_record(pieces[2], -1, 2, b"", None)
    header = writer.batch_header(
        payload=[pieces[0], bytes(pieces[1]), memoryview(pieces[2])],
        attributes=0x10,
        record_count=3,
        base_timestamp=1000,
        max_timestamp=1005,
        producer_id=13131,
        producer_epoch=1,
        base_sequence=7,
    )
    assert header + b"".join(pieces) == V2_TRANSACTIONAL


def test_checksum_in_pieces(writer: ModuleType) -> None:
    assert writer.checksum(b"Some String") == 608512271
    assert writer.checksum(memoryview(b"ing"), writer.checksum(bytearray(b"Some Str"))) == 608512271
    assert writer.checksum(b"", 5) == 5


records_of_a_batch = st.lists(st.tuples(timestamps, fields, fields, headers), min_size=1, max_size=12)


def write(
    writer: ModuleType, records: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]
) -> bytes:
    base = records[0][0]
    payload = bytearray()
    for index, (timestamp, key, value, record_headers) in enumerate(records):
        delta = wrap64(timestamp - base)
        expected = writer.exact_record_size(
            delta,
            index,
            -1 if key is None else len(key),
            -1 if value is None else len(value),
            writer.encode_headers(record_headers),
        )
        assert writer.append_record(payload, delta, index, key, value, record_headers) == expected
    header = writer.batch_header(
        payload=[payload],
        attributes=0,
        record_count=len(records),
        base_timestamp=base,
        max_timestamp=max(each[0] for each in records),
    )
    return bytes(header + payload)


@given(records_of_a_batch)
def test_both_forms_write_the_same_and_it_reads_back(
    records: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
) -> None:
    """O 5: round trip with negative deltas, null and empty fields, through the strict reader."""
    data = write(batch_v2, records)
    assert data == write(INTERPRETED, records)
    (batch,) = read_batches(data)
    assert [(each.timestamp, each.key, each.value, each.headers) for each in batch.records] == records
    assert batch.size == len(data) == 61 + sum(each.size for each in batch.records)
    check_produced(batch)


@given(records_of_a_batch)
def test_an_independent_reader_agrees(
    records: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
) -> None:
    """O 5: round trip through an independent decoder."""
    spread = [each for each in records if abs(each[0] - records[0][0]) < 2**62]
    peer = PeerBatch(write(batch_v2, spread))
    assert peer.validate_crc()
    # The peer hands -1 out as None.
    seen = [
        (-1 if each.timestamp is None else each.timestamp, each.key, each.value, tuple(each.headers)) for each in peer
    ]
    assert seen == spread


@pytest.mark.parametrize("size", [16 * 1024, 70_000])
def test_large_headers(writer: ModuleType, size: int) -> None:
    """O 5: headers of 16 KB and more."""
    record = (5, None, b"v" * size, (("schlüssel" * 2000, b"x" * size), ("", b""), ("", None)))
    (batch,) = read_batches(write(writer, [record]))
    assert batch.records[0][1:5] == record


class Text(str):
    """A str that is not one to compiled code."""


class Header(NamedTuple):
    """A pair that is no plain tuple."""

    key: str
    value: bytes


@pytest.mark.parametrize("count", [0, 1, 62, 63, 64, 65, 170, 200])
def test_as_many_headers_as_their_number_is_long(writer: ModuleType, count: int) -> None:
    given = [("", None)] * count
    assert writer.encode_headers(given) == writer.encode_headers(tuple(given)) == section_of(given)


@pytest.mark.parametrize("size", [0, 1, 63, 64, *range(470, 530), 8191, 8192])
@pytest.mark.parametrize("in_value", [True, False])
def test_headers_of_every_size_around_the_room_for_short_ones(writer: ModuleType, size: int, in_value: bool) -> None:
    given: list[tuple[str, bytes | None]] = [("a", b"1"), ("k", b"v" * size) if in_value else ("k" * size, None)]
    assert writer.encode_headers(given) == section_of(given)
    assert writer.encode_headers([*given, ("z", b"")]) == section_of([*given, ("z", b"")])


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ([("é", b"1")], [("é", b"1")]),
        ([("a", b"1"), (Text("b"), b"2")], [("a", b"1"), ("b", b"2")]),
        ([Header("a", b"1")], [("a", b"1")]),
        ([("a", bytearray(b"1")), ("b", memoryview(b"2"))], [("a", b"1"), ("b", b"2")]),
        ({"a": b"1", "b": None}, [("a", b"1"), ("b", None)]),
        (deque([("a", b"1")]), [("a", b"1")]),
        ({"a": b"1"}.items(), [("a", b"1")]),
    ],
)
def test_headers_that_need_a_closer_look(writer: ModuleType, given: Any, means: list[tuple[str, bytes | None]]) -> None:
    assert writer.encode_headers(given) == section_of(means)


def test_offsets_beyond_31_bits(writer: ModuleType) -> None:
    """O 5: offsets above 2**31."""
    records = bytearray()
    writer.append_record(records, 0, 0, None, None)
    header = writer.batch_header(
        payload=[records],
        attributes=0,
        record_count=1,
        base_timestamp=0,
        max_timestamp=0,
        base_offset=2**40,
        leader_epoch=9,
    )
    (batch,) = read_batches(bytes(header + records))
    assert (batch.records[0].offset, batch.leader_epoch) == (2**40, 9)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"base_offset": 5}, "base offset 0"),
        ({"attributes": 0x20}, "no control batch"),
        ({"attributes": 0x08}, "create time"),
        ({"attributes": 0x40}, "no delete horizon"),
        ({"attributes": 0x10}, "a producer id for a transaction"),
        ({"max_timestamp": 6}, "the largest timestamp in the header"),
        ({"producer_id": 4}, "a base sequence exactly with a producer id"),
    ],
)
def test_what_a_broker_refuses(change: dict[str, int], rule: str) -> None:
    records = bytearray()
    batch_v2.append_record(records, 0, 0, None, None)
    good = {"attributes": 0, "record_count": 1, "base_timestamp": 5, "max_timestamp": 5}
    check_produced(read_batches(bytes(batch_v2.batch_header(payload=[records], **good) + records))[0])
    (batch,) = read_batches(bytes(batch_v2.batch_header(payload=[records], **{**good, **change}) + records))
    with pytest.raises(InvalidRecordError, match=rule):
        check_produced(batch)


def test_a_header_is_61_bytes_with_every_field_in_its_place(writer: ModuleType) -> None:
    header = writer.batch_header(
        payload=[b"xyz"],
        attributes=0x15,
        record_count=7,
        base_timestamp=-1,
        max_timestamp=2**62,
        producer_id=2**61,
        producer_epoch=32767,
        base_sequence=2**31 - 1,
        base_offset=2**60,
        leader_epoch=8,
    )
    assert struct.unpack(">qiibIhiqqqhii", header) == (
        2**60, 52, 8, 2, batch_v2.checksum(bytes(header[21:]) + b"xyz"), 0x15, 6, -1, 2**62, 2**61, 32767, 2**31 - 1, 7,
    )  # fmt: skip
