"""Columns read from Arrow memory equal what pyarrow says is in them, in every layout, sliced or not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._arrow import ArrowBatch, batches
from forebay.errors import IllegalArgumentError

BINARY_TYPES = [pa.binary(), pa.large_binary(), pa.binary_view()]
TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view()]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch_of(**columns: pa.Array) -> ArrowBatch:
    return ArrowBatch(pa.RecordBatch.from_pydict(columns))


def cut(array: pa.Array, start: int, stop: int) -> pa.Array:
    return array.slice(min(start, len(array)), max(0, stop - start))


def varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def header_section(headers: list[dict[str, Any]] | None) -> bytes:
    out = varint(len(headers or ()))
    for header in headers or ():
        key = header["key"].encode()
        out += varint(len(key)) + key
        value = header["value"]
        out += varint(-1) if value is None else varint(len(value)) + value
    return out


@pytest.mark.parametrize("kind", BINARY_TYPES, ids=str)
@given(cells=st.lists(st.none() | st.binary(max_size=40)), start=st.integers(0, 5), stop=st.integers(0, 50))
def test_binary_cells_equal_pyarrows(kind: pa.DataType, cells: list[bytes | None], start: int, stop: int) -> None:
    array = cut(pa.array(cells, kind), start, stop)
    column = batch_of(value=array).bytes_column("value")
    assert [column.get(row) for row in range(column.length)] == array.to_pylist()
    assert [column.is_null(row) for row in range(column.length)] == [cell is None for cell in array.to_pylist()]


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
@given(cells=st.lists(st.none() | st.text(max_size=20)), start=st.integers(0, 5))
def test_text_cells_are_utf8(kind: pa.DataType, cells: list[str | None], start: int) -> None:
    array = cut(pa.array(cells, kind), start, 100)
    column = batch_of(value=array).bytes_column("value")
    expected = [None if cell is None else cell.encode() for cell in array.to_pylist()]
    assert [column.get(row) for row in range(column.length)] == expected


@given(cells=st.lists(st.none() | st.binary(min_size=3, max_size=3), min_size=1), start=st.integers(0, 5))
def test_fixed_size_binary(cells: list[bytes | None], start: int) -> None:
    array = cut(pa.array(cells, pa.binary(3)), start, 100)
    column = batch_of(value=array).bytes_column("value")
    assert [column.get(row) for row in range(column.length)] == array.to_pylist()


@pytest.mark.parametrize(
    "index", [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64()], ids=str
)
def test_dictionary_of_strings(index: pa.DataType) -> None:
    array = pa.array(["a", None, "bb", "a"]).dictionary_encode().cast(pa.dictionary(index, pa.string()))
    column = batch_of(value=array.slice(1)).bytes_column("value")
    assert [column.get(row) for row in range(3)] == [None, b"bb", b"a"]


def test_an_all_null_column_without_a_type() -> None:
    column = batch_of(value=pa.nulls(3)).bytes_column("value")
    assert [column.get(row) for row in range(column.length)] == [None, None, None]


def test_an_empty_batch_has_columns_without_rows() -> None:
    batch = batch_of(value=pa.array([], pa.binary()), headers=pa.array([], HEADERS))
    assert batch.length == 0
    assert batch.names == ("value", "headers")
    assert batch.bytes_column("value").length == 0
    assert batch.headers_column("headers").length == 0


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_integers_of_every_width(kind: pa.DataType) -> None:
    bits = kind.bit_width
    cells = [None, 0, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
    column = batch_of(n=pa.array([7, *cells], kind).slice(1)).int_column("n")
    assert [None if column.is_null(row) else column.value(row) for row in range(column.length)] == cells


@given(value=st.integers(-(2**63), 2**63 - 1), unit=st.sampled_from(["ms", "us", "ns"]))
def test_timestamps_round_down_on_both_sides_of_1970(value: int, unit: str) -> None:
    column = batch_of(t=pa.array([value], pa.int64()).view(pa.timestamp(unit, "UTC"))).timestamp_column("t")
    assert column.millis(0) == value // {"ms": 1, "us": 1000, "ns": 1_000_000}[unit]


def test_timestamps_in_seconds_and_plain_milliseconds() -> None:
    batch = batch_of(
        seconds=pa.array([5, -5, None], pa.timestamp("s")),
        millis=pa.array([12, -3, None], pa.int64()),
    )
    seconds, millis = batch.timestamp_column("seconds"), batch.timestamp_column("millis")
    assert [seconds.millis(0), seconds.millis(1), seconds.is_null(2)] == [5000, -5000, True]
    assert [millis.millis(0), millis.millis(1), millis.is_null(2)] == [12, -3, True]


@pytest.mark.parametrize("value", [9223372036854776, -9223372036854776])
def test_seconds_that_do_not_fit_are_refused_with_the_row(value: int) -> None:
    column = batch_of(t=pa.array([0, value], pa.timestamp("s"))).timestamp_column("t")
    with pytest.raises(IllegalArgumentError, match=r"column 't', row 1: -?9223372036854776 s do not fit"):
        column.millis(1)


header_lists = st.lists(
    st.none()
    | st.lists(
        st.fixed_dictionaries({"key": st.text(max_size=8), "value": st.none() | st.binary(max_size=300)}), max_size=5
    )
)


@given(rows=header_lists, start=st.integers(0, 4), large=st.booleans())
def test_header_sections_are_the_record_formats(
    rows: list[list[dict[str, Any]] | None], start: int, large: bool
) -> None:
    kind = pa.large_list(HEADERS.value_type) if large else HEADERS
    array = cut(pa.array(rows, kind), start, 100)
    column = batch_of(headers=array).headers_column("headers")
    assert [column.section(row) for row in range(column.length)] == [header_section(row) for row in array.to_pylist()]


def test_headers_over_a_sliced_struct() -> None:
    entries = pa.array(
        [{"key": "x", "value": b"0"}, {"key": "a", "value": b"1"}, {"key": "b", "value": None}], HEADERS.value_type
    )
    array = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), entries.slice(1))
    column = batch_of(headers=array).headers_column("headers")
    assert column.section(0) == header_section([{"key": "a", "value": b"1"}])
    assert column.section(1) == header_section([{"key": "b", "value": None}])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([None], "row 1: header 0 is null"),
        ([{"key": "k", "value": b""}, {"key": None, "value": b""}], "row 1: header 1 has a null key"),
    ],
)
def test_headers_that_kafka_has_no_bytes_for_are_refused_with_the_row(bad: list[Any], message: str) -> None:
    column = batch_of(headers=pa.array([[], bad], HEADERS)).headers_column("headers")
    with pytest.raises(IllegalArgumentError, match=message):
        column.section(1)


@pytest.mark.parametrize(
    ("opener", "array", "message"),
    [
        ("bytes_column", pa.array([1]), "format 'l'"),
        ("bytes_column", pa.array([[b"a"]]), r"format '\+l'"),
        ("int_column", pa.array(["a"]), "format 'u'"),
        ("int_column", pa.array([1], pa.uint64()), "format 'L'"),
        ("int_column", pa.array([1.5]), "format 'g'"),
        ("timestamp_column", pa.array([1], pa.int32()), "format 'i'"),
        ("timestamp_column", pa.array([1], pa.date32()), "format 'tdD'"),
        ("headers_column", pa.array([["a"]]), r"format '\+l'"),
        ("headers_column", pa.array([[{"k": "a", "v": b""}]]), "named key and value"),
        ("headers_column", pa.array([[{"key": 1, "value": b""}]]), "column 'c.key'.*format 'l'"),
    ],
)
def test_types_that_are_not_read_are_refused_by_name(opener: str, array: pa.Array, message: str) -> None:
    with pytest.raises(IllegalArgumentError, match=f"column 'c.*{message}|{message}"):
        getattr(batch_of(c=array), opener)("c")


def test_a_missing_and_a_doubled_column_are_named() -> None:
    batch = ArrowBatch(pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(IllegalArgumentError, match="column 'b' is missing; columns: a, a"):
        batch.int_column("b")
    with pytest.raises(IllegalArgumentError, match="column 'a' is there twice"):
        batch.int_column("a")


def test_a_column_outlives_the_batch_it_came_from() -> None:
    column = batch_of(value=pa.array([b"x" * 100, b"y"])).bytes_column("value")
    pa.array([b"z" * 100] * 100)
    assert column.get(0) == b"x" * 100


def test_a_sliced_struct_array_and_its_null_rows() -> None:
    rows = pa.array([{"a": 1}, {"a": 2}, None, {"a": 4}])
    column = ArrowBatch(rows.slice(0, 2)).int_column("a")
    assert [column.value(0), column.value(1)] == [1, 2]
    assert ArrowBatch(rows.slice(3)).int_column("a").value(0) == 4
    with pytest.raises(IllegalArgumentError, match="row 1 is null as a whole"):
        ArrowBatch(rows.slice(1))


def test_streams_hand_out_every_batch() -> None:
    table = pa.table({"a": pa.chunked_array([[1, 2], [3], []], pa.int64())})
    read = [
        column.value(row)
        for batch in batches(table)
        for column in [batch.int_column("a")]
        for row in range(batch.length)
    ]
    assert read == [1, 2, 3]


def test_a_record_batch_is_a_stream_of_one() -> None:
    assert [batch.length for batch in batches(pa.RecordBatch.from_pydict({"a": [1, 2]}))] == [2]


def test_columns_of_a_stream_outlive_it() -> None:
    columns = [batch.bytes_column("a") for batch in batches(pa.table({"a": pa.chunked_array([[b"p"], [b"q" * 50]])}))]
    assert [column.get(0) for column in columns] == [b"p", b"q" * 50]


def test_a_failing_stream_says_why() -> None:
    def rows() -> Any:
        yield pa.RecordBatch.from_pydict({"a": [1]})
        raise ValueError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), rows())
    stream = batches(reader)
    assert next(stream).length == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(stream)


@pytest.mark.parametrize("source", [[1, 2], None, b"bytes"])
def test_what_is_not_arrow_is_refused_by_its_type(source: object) -> None:
    with pytest.raises(
        IllegalArgumentError, match=f"{type(source).__name__} does not speak the Arrow C data interface"
    ):
        list(batches(source))


def test_an_array_without_names_is_refused() -> None:
    with pytest.raises(IllegalArgumentError, match="named columns are needed"):
        ArrowBatch(pa.array([1]))
