"""Values of columns: nested, refused with their fields, and shown whatever is wrong with them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from forebay.serializers.rows.values import Refused, objects_of, shown_of, values_of
from tests.support.arrow_types import stored, text

LATE = 253_402_318_799
"""The last second of 9999 in New York, which is in 10000 in UTC."""


def test_values_of_nested_columns() -> None:
    values = [{"a": 1, "b": {"c": None}}, None, {"a": None, "b": None}]
    assert values_of(pa.array(values)) == values
    assert values_of(pa.chunked_array([pa.array(values)])) == values
    assert values_of(pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))) == [{"k": 1}]


def test_values_are_those_of_arrow_also_in_a_slice() -> None:
    inner = pa.struct([("x", pa.int32()), ("m", pa.map_(pa.string(), pa.int32()))])
    kind = pa.struct([("a", pa.string()), ("inner", inner), ("list", pa.list_(inner)), ("none", pa.struct([]))])
    rows = [
        {
            "a": str(n),
            "inner": None if n % 3 == 0 else {"x": n, "m": [("k", n)]},
            "list": [{"x": n, "m": []}],
            "none": {},
        }
        for n in range(9)
    ]
    column = pa.array([None if n % 4 == 1 else row for n, row in enumerate(rows)], kind).slice(1, 7)
    assert values_of(column) == column.to_pylist(maps_as_pydicts="strict")


def test_days_and_times_are_numbers() -> None:
    for kind, number, expected in (
        (pa.date32(), 11, 11), (pa.date64(), 11 * 86_400_000, 11), (pa.time32("s"), 3, 3000), (pa.time32("ms"), 3, 3),
        (pa.time64("us"), 3, 3), (pa.time64("ns"), 3000, 3), (pa.timestamp("s"), LATE, LATE * 10**6),
        (pa.timestamp("ns", "UTC"), 3000, 3),
    ):  # fmt: skip
        assert values_of(stored(kind, number)) == [expected]


def bad(kind: Any, number: int) -> Any:
    return pa.chunked_array([pa.nulls(1, kind), stored(kind, number)])


@pytest.mark.parametrize(
    ("column", "path", "why"),
    [
        (bad(pa.timestamp("ns"), 1), "", "would lose data"),
        (bad(pa.timestamp("s"), 2**62), "", "out of bounds"),
        (bad(pa.date64(), 1), "", "would lose data"),
        (bad(pa.time64("us"), 86_400_000_000), "", "86400000000 us is no time of a day"),
        (pa.chunked_array([pa.nulls(1, pa.string()), text(pa.string(), b"\xff")]), "", "is no text in UTF-8"),
        (pa.chunked_array([[None, [("k", 1), ("k", 2)]]], pa.map_(pa.string(), pa.int8())), "", "'k' is there twice"),
    ],
    ids=["nanoseconds", "seconds", "date64", "time", "text", "map"],
)
def test_what_cannot_be_had_stands_in_its_place_at_any_depth(column: Any, path: str, why: str) -> None:
    (cell,) = column.chunks[-1].slice(len(column.chunks[-1]) - 1)
    leaf = column.chunks[-1].slice(len(column.chunks[-1]) - 1, 1)
    inside = {
        "": column.combine_chunks(),
        "[]": pa.ListArray.from_arrays([0, 0, 1], leaf),
        "a": pa.StructArray.from_arrays([column.combine_chunks()], ["a"]),
        "a[]": pa.StructArray.from_arrays([pa.ListArray.from_arrays([0, 0, 1], leaf)], ["a"]),
        "a.b": pa.StructArray.from_arrays([pa.StructArray.from_arrays([column.combine_chunks()], ["b"])], ["a"]),
    }
    assert cell is not None
    for where, nested in inside.items():
        good, refused = values_of(nested)
        assert not isinstance(good, Refused)
        assert isinstance(refused, Refused) and refused.path == where and why in refused.why
        assert str(refused) == (f"{where}: {refused.why}" if where else refused.why)


def test_what_is_shown_has_everything() -> None:
    assert shown_of(stored(pa.timestamp("us", "UTC"), LATE * 10**6)) == ["+10000-01-01T04:59:59.000000Z"]
    assert shown_of(stored(pa.date32(), 2**31 - 1)) == [2**31 - 1]
    assert shown_of(text(pa.string(), b"a\xff")) == ["a\ufffd"]
    twice = pa.array([[("k", 1), ("k", 2)], [("k", 3)]], pa.map_(pa.string(), pa.int8()))
    assert shown_of(twice) == [[["k", 1], ["k", 2]], {"k": 3}]


def test_objects_are_those_of_python_where_it_has_them() -> None:
    column = pa.chunked_array([[dt.datetime(2024, 1, 2)], stored(pa.timestamp("us"), LATE * 10**6)])
    good, refused = objects_of(column)
    assert good == dt.datetime(2024, 1, 2) and isinstance(refused, Refused)
    assert objects_of(pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8()))) == [[("k", 1)]]
    assert isinstance(objects_of(stored(pa.time32("s"), 86_400))[0], Refused)  # Python would begin the day again


def test_a_row_that_its_dictionary_has_no_value_for() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 5, None]), pa.array(["a"]), safe=False)
    good, refused, null = values_of(column)
    assert (good, null) == ("a", None) and isinstance(refused, Refused) and "5 out of bounds" in refused.why
    assert shown_of(column) == ["a", refused.why, None]
