"""Columns of bytes equal what pyarrow says is in them, in every layout, sliced or not; so do Python's objects."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay._arrow.columns import BytesColumn
from forebay.errors import IllegalArgumentError
from tests.unit._arrow.arrays import batch_of, cut

BINARY_TYPES = [pa.binary(), pa.large_binary(), pa.binary_view()]
TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view()]


@pytest.mark.parametrize("kind", BINARY_TYPES, ids=str)
@settings(deadline=None)
@given(cells=st.lists(st.none() | st.binary(max_size=40)), start=st.integers(0, 5), stop=st.integers(0, 50))
def test_binary_cells_equal_pyarrows(kind: pa.DataType, cells: list[bytes | None], start: int, stop: int) -> None:
    array = cut(pa.array(cells, kind), start, stop)
    column = batch_of(value=array).bytes_column("value")
    assert [column.get(row) for row in range(column.length)] == array.to_pylist()
    assert [column.is_null(row) for row in range(column.length)] == [cell is None for cell in array.to_pylist()]


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
@settings(deadline=None)
@given(cells=st.lists(st.none() | st.text(max_size=20)), start=st.integers(0, 5))
def test_text_cells_are_utf8(kind: pa.DataType, cells: list[str | None], start: int) -> None:
    array = cut(pa.array(cells, kind), start, 100)
    column = batch_of(value=array).bytes_column("value")
    expected = [None if cell is None else cell.encode() for cell in array.to_pylist()]
    assert [column.get(row) for row in range(column.length)] == expected


@settings(deadline=None)
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


def test_a_column_outlives_the_batch_it_came_from() -> None:
    column = batch_of(value=pa.array([b"x" * 100, b"y"])).bytes_column("value")
    pa.array([b"z" * 100] * 100)
    assert column.get(0) == b"x" * 100


@pytest.mark.parametrize("ends", [pa.int16(), pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize("start", [0, 1, 3, 6])
def test_runs_are_found_in_any_order(ends: pa.DataType, start: int) -> None:
    array = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 7], ends), pa.array([b"a", None, b"ccc"])).slice(start)
    column = batch_of(value=array).bytes_column("value")
    expected = [b"a", b"a", None, b"ccc", b"ccc", b"ccc", b"ccc"][start:]
    rows = [*range(len(expected)), *reversed(range(len(expected))), 0]
    assert [column.get(row) for row in rows] == [expected[row] for row in rows]


def test_a_column_that_was_advanced_begins_later() -> None:
    column = batch_of(value=pa.array([b"a", None, b"c"]).slice(1)).bytes_column("value")
    column.advance(1)
    assert (column.length, column.get(0)) == (1, b"c")


def test_objects_are_bytes_or_text_and_are_held() -> None:
    cells: list[object] = [b"a" * 50, None, "é", bytearray(b"b"), memoryview(b"c"), b""]
    column = BytesColumn("value", len(cells), None)
    column.open_objects(list(cells))
    cells.clear()
    assert [column.get(row) for row in range(6)] == [b"a" * 50, None, "é".encode(), b"b", b"c", b""]


@pytest.mark.parametrize(
    ("cell", "error", "message"),
    [
        (1.5, TypeError, "column 'value', row 1: float is not allowed; allowed: bytes, str, None"),
        ("\ud800", IllegalArgumentError, "column 'value', row 1: .* cannot be encoded as UTF-8"),
    ],
)
def test_an_object_that_has_no_bytes_is_named(cell: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BytesColumn("value", 2, None).open_objects([b"a", cell])
