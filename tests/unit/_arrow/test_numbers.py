"""Columns of integers and timestamps: every width and unit, both signs, nulls."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.errors import IllegalArgumentError
from tests.unit._arrow.arrays import batch_of


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
def test_seconds_that_do_not_fit_are_refused(value: int) -> None:
    column = batch_of(t=pa.array([0, value], pa.timestamp("s"))).timestamp_column("t")
    with pytest.raises(IllegalArgumentError, match=r"column 't': -?9223372036854776 s do not fit"):
        column.millis(1)


def test_unsigned_numbers_of_64_bits_are_told_as_they_are() -> None:
    column = batch_of(n=pa.array([1, 2**64 - 1], pa.uint64())).int_column("n")
    assert [column.exact(0), column.exact(1)] == [1, 2**64 - 1]


def test_an_advanced_column_of_timestamps_begins_later() -> None:
    column = batch_of(t=pa.array([1, 2, None], pa.int64())).timestamp_column("t")
    column.advance(1)
    assert (column.length, column.millis(0), column.is_null(1)) == (2, 2, True)


SHORTER = {
    "dictionary": lambda values: pa.array(values).dictionary_encode(),
    "narrow": lambda values: pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 2, None], pa.uint8()), pa.array([values[0], None, values[2]], values.type)
    ),
    "runs": lambda values: pa.compute.run_end_encode(values),
    "short runs": lambda values: pa.compute.run_end_encode(values, run_end_type=pa.int16()),
}


@pytest.mark.parametrize("layout", SHORTER.values(), ids=list(SHORTER))
@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint32(), pa.int64(), pa.timestamp("s"), pa.timestamp("us", "UTC")], ids=str
)
def test_dictionaries_and_runs_are_taken_as_what_they_stand_for(layout: Any, kind: Any) -> None:
    plain = pa.array([5, None, 7, 7, None], pa.int64()).cast(kind)
    column = layout(plain)
    is_time = pa.types.is_timestamp(kind)
    expected = [None if cell is None else cell * {"s": 1000}.get(kind.unit, 1) // {"us": 1000}.get(kind.unit, 1) if is_time else cell for cell in [5, None, 7, 7, None]]  # fmt: skip  # noqa: E501
    for start, length in ((0, 5), (1, 4), (2, 2), (4, 1), (5, 0)):
        batch = batch_of(n=column.slice(start, length))
        opened: Any = batch.timestamp_column("n") if is_time else batch.int_column("n")
        read = opened.millis if is_time else opened.value
        found = [None if opened.is_null(row) else read(row) for row in range(opened.length)]
        assert found == expected[start : start + length]
        if length > 2:
            opened.advance(2)
            assert opened.length == length - 2 and opened.is_null(0) == (expected[start + 2] is None)
    with pytest.raises(
        IllegalArgumentError, match="column 'n': Arrow type dictionary<values=string.* is not read here"
    ):
        batch_of(n=pa.array(["a"]).dictionary_encode()).int_column("n")
