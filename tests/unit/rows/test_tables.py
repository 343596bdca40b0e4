"""What a table is, and its values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from forebay.errors import IllegalArgumentError
from forebay.rows.tables import as_table, values_of


def test_tables_of_every_maker() -> None:
    for given in ({"a": [1]}, pa.table({"a": [1]}), pa.record_batch({"a": [1]})):
        assert as_table("f", given, None).to_pylist() == [{"a": 1}]
    assert as_table("f", {"a": [1], "b": [2]}, ["b"]).column_names == ["b"]


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(TypeError, match="f takes a table with named columns; got int"):
        as_table("f", 7, None)
    with pytest.raises(IllegalArgumentError, match="f: column 'c' is missing; columns: a"):
        as_table("f", {"a": [1]}, ["c"])
    with pytest.raises(IllegalArgumentError, match="f: the table has no column"):
        as_table("f", {"a": [1]}, [])


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
