"""What a table is, and its values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from forebay.errors import IllegalArgumentError
from forebay.serializers.rows.tables import as_table, bare, plain


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


def test_what_a_library_cannot_export_is_no_error_of_its_own() -> None:
    pandas = pytest.importorskip("pandas")
    for frame in (pandas.DataFrame({"a": [object()]}), pandas.DataFrame({"a": [1j]})):
        with pytest.raises(IllegalArgumentError, match="^f: DataFrame cannot be made a table of Arrow: .*column a"):
            as_table("f", frame, None)
    with pytest.raises(IllegalArgumentError, match="^f: column 'a' is there more than once"):
        as_table("f", pandas.DataFrame([[1, 2]], columns=["a", "a"]), None)
    with pytest.raises(IllegalArgumentError, match="^f: dict cannot be made a table of Arrow: .*expected length 1"):
        as_table("f", {"a": [1], "b": [1, 2]}, None)
    broken = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int8())]), (1 / 0 for _ in "x"))
    with pytest.raises(IllegalArgumentError, match="^f: RecordBatchReader cannot be made a table of Arrow: .*division"):
        as_table("f", broken, None)
    for cells in ([1, "x"], [2**70], [object()]):
        with pytest.raises(IllegalArgumentError, match="^f: column 'a' cannot be made one of Arrow: "):
            as_table("f", {"a": cells}, None)


def test_every_short_layout_becomes_a_plain_one() -> None:
    values = pa.array(["x", None, "y", "x"])
    views = values.cast(pa.string_view())
    runs = pa.compute.run_end_encode(pa.array(["x", "x", None, "y"]))
    short: list[tuple[Any, list[Any]]] = [
        (values.dictionary_encode(), ["x", None, "y", "x"]),
        (views, ["x", None, "y", "x"]),
        (pa.DictionaryArray.from_arrays(pa.array([3, 1, None], pa.uint8()), views), ["x", None, None]),
        (runs, ["x", "x", None, "y"]),
        (pa.DictionaryArray.from_arrays(pa.array([2]), pa.DictionaryArray.from_arrays([0, 0, 1], ["a", "b"])), ["b"]),
    ]
    for column, expected in short:
        for given in (column, column.slice(1), pa.chunked_array([column, column.slice(2)]), column.slice(0, 0)):
            rows = expected if len(given) == len(expected) else expected[1:] if len(given) == len(expected) - 1 else []
            rows = expected + expected[2:] if isinstance(given, pa.ChunkedArray) else rows
            made = plain(given)
            assert made.to_pylist() == rows and str(made.type) in ("string", "large_string")
    assert bare(pa.dictionary(pa.int8(), pa.run_end_encoded(pa.int32(), pa.int64()))) == pa.int64()
