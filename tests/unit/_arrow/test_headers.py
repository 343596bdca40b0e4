"""Columns of headers, encoded as the record format has them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.errors import IllegalArgumentError
from tests.unit._arrow.arrays import HEADERS, batch_of, cut
from tests.unit._records.goldens import section_of


def header_section(headers: list[dict[str, Any]] | None) -> bytes:
    return section_of([(header["key"], header["value"]) for header in headers or ()])


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
        ([None], "column 'headers': header 0 is null"),
        ([{"key": "k", "value": b""}, {"key": None, "value": b""}], "column 'headers': header 1 has a null key"),
    ],
)
def test_headers_that_kafka_has_no_bytes_for_are_refused(bad: list[Any], message: str) -> None:
    column = batch_of(headers=pa.array([[], bad], HEADERS)).headers_column("headers")
    with pytest.raises(IllegalArgumentError, match=message):
        column.section(1)


def test_maps_are_headers_whatever_their_fields_are_called() -> None:
    array = pa.array([None, [("a", b"1"), ("b", None)], []], pa.map_(pa.string(), pa.binary())).slice(1)
    column = batch_of(headers=array).headers_column("headers")
    assert column.section(0) == header_section([{"key": "a", "value": b"1"}, {"key": "b", "value": None}])
    assert column.section(1) == header_section(None)


ENTRY = HEADERS.value_type
LAYOUTS = (pa.list_(ENTRY), pa.large_list(ENTRY), pa.list_view(ENTRY), pa.large_list_view(ENTRY))


@pytest.mark.parametrize("kind", [*LAYOUTS, pa.list_(ENTRY, 2)], ids=lambda kind: str(kind).partition("<")[0])
def test_every_layout_of_a_list_is_taken(kind: Any) -> None:
    pairs = [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]
    others = [] if kind == pa.list_(ENTRY, 2) else [[], pairs[:1]]
    whole = pa.array([pairs, None, pairs[::-1], *others], kind)
    for array in (whole, whole.slice(1), whole.slice(2, 1), whole.slice(3)):
        column = batch_of(headers=array).headers_column("headers")
        assert [column.section(row) for row in range(column.length)] == [
            header_section(one) for one in array.to_pylist()
        ]


def test_views_may_overlap_and_lie_in_any_order() -> None:
    entries = pa.array([{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}], ENTRY)
    offsets, sizes = pa.array([1, 0, 0], pa.int32()), pa.array([1, 2, 1], pa.int32())
    array = pa.ListViewArray.from_arrays(offsets, sizes, entries)
    column = batch_of(headers=array).headers_column("headers")
    assert [column.section(row) for row in range(3)] == [header_section(one) for one in array.to_pylist()]


def test_keys_and_values_in_runs_and_dictionaries() -> None:
    keys, values = pa.array(["a", "a", "b"]), pa.array([b"1", b"1", None])
    for encode in (pa.compute.run_end_encode, pa.compute.dictionary_encode):
        entries = pa.StructArray.from_arrays([encode(keys), encode(values)], ["key", "value"])
        array = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), entries)
        column = batch_of(headers=array).headers_column("headers")
        assert [column.section(row) for row in range(2)] == [header_section(one) for one in array.to_pylist()]
    numbers = pa.StructArray.from_arrays([pa.compute.run_end_encode(pa.array([1])), pa.array([b"1"])], ["key", "value"])
    with pytest.raises(IllegalArgumentError, match=r"column 'headers.key': Arrow type run_end_encoded"):
        batch_of(headers=pa.ListArray.from_arrays([0, 1], numbers)).headers_column("headers")
