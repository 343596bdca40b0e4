"""cli.input.tables: CSV and Parquet."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.cli.failure import CommandError
from forebay.cli.input.rows import BadRow, Row
from forebay.cli.input.tables import CsvInput, ParquetInput, TableFormat
from tests.unit.cli.fakes import Trickle, rows_of


def rows(data: bytes, layout: TableFormat | None = None, limit: int = 1000) -> list[Row | BadRow]:
    source = CsvInput("x.csv", io.BytesIO(data), layout or TableFormat(), limit=limit, size=len(data), owned=True)
    found = rows_of(source.blocks())
    assert source.position() == len(data)
    source.close()
    return found


def test_a_row_becomes_json_with_the_header_s_names() -> None:
    data = b'\xef\xbb\xbfid,name\r\n1,"a, ""b"""\r\n\r\n2,"two\nlines"\n'
    assert rows(data) == [Row(2, b'{"id":"1","name":"a, \\"b\\""}'), Row(5, b'{"id":"2","name":"two\\nlines"}')]


def test_columns_for_key_and_value() -> None:
    assert rows(b"id,name\n1,\xc3\xa4\n", TableFormat("id", "name")) == [Row(2, "ä".encode(), b"1")]
    assert rows(b"id\tname\n1\tx\n", TableFormat("id", None, "\t")) == [Row(2, b'{"id":"1","name":"x"}', b"1")]


def test_a_row_of_another_width_is_bad() -> None:
    assert rows(b"a,b\n1\n1,2\n1,2,3\n") == [
        BadRow(2, "1 fields, but the header has 2"),
        Row(3, b'{"a":"1","b":"2"}'),
        BadRow(4, "3 fields, but the header has 2"),
    ]


@pytest.mark.parametrize(
    ("data", "expected", "code"),
    [
        (b"", "x.csv: no header row", 2),
        (b"a,b,a\n", "x.csv: column 'a' is there more than once", 2),
        (b"a,b\n", "x.csv: --key-column 'id' is not among the columns a, b", 2),
        (b'id\n"a"b\n', "x.csv:2: not CSV: ", 1),
        (b"id\n" + b'"' + b"x" * 2000 + b'"\n', "x.csv:2: not CSV: field larger than field limit", 1),
        (b"id\n\xff\n", "x.csv:2: not UTF-8", 1),
    ],
)
def test_csv_that_cannot_be_read_on(data: bytes, expected: str, code: int) -> None:
    with pytest.raises(CommandError, match=expected) as caught:
        rows(data, TableFormat("id" if b"a,b,a" not in data else None))
    assert caught.value.exit_code == code


def test_a_line_without_an_end_is_not_held() -> None:
    pieces = [b"id\n1\n", *[b"x" * 60] * 50]
    stream = Trickle(*pieces)
    found = CsvInput("x.csv", stream, TableFormat(), limit=100).blocks()
    assert rows_of([next(found)]) == [Row(2, b'{"id":"1"}')]
    with pytest.raises(CommandError, match=r"x.csv:3: the line is longer than max.request.size \(100 bytes\)"):
        next(found)
    assert stream.read1(1)  # what follows was not read


def test_what_comes_before_broken_csv_is_handed_out() -> None:
    found = CsvInput("x.csv", io.BytesIO(b'id\n1\n2\n"a"b\n'), TableFormat(), limit=100).blocks()
    assert rows_of([next(found)]) == [Row(2, b'{"id":"1"}'), Row(3, b'{"id":"2"}')]
    with pytest.raises(CommandError, match="x.csv:4: not CSV"):
        next(found)


def test_rows_of_csv_are_handed_out_when_they_are_there() -> None:
    pieces = [b"id\n1\n2", b"2\r", b'\n"a', b'\nb"\n', b"4"]
    found = CsvInput("stdin", Trickle(*pieces), TableFormat(None, "id"), limit=100).blocks()
    blocks = [rows_of([block]) for block in found]
    assert blocks == [[Row(2, b"1")], [Row(3, b"22")], [Row(5, b"a\nb")], [Row(6, b"4")]]


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6), max_size=6), st.integers(1, 9)
)
def test_csv_in_any_pieces_has_the_same_rows(texts: list[str], step: int) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([["id"], *([text] for text in texts)])
    data = written.getvalue().encode()
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    found = rows_of(CsvInput("x", Trickle(*pieces), TableFormat(None, "id"), limit=1000).blocks())
    assert [row.value for row in found if isinstance(row, Row)] == [text.encode() for text in texts]


def test_standard_input_stays_open() -> None:
    stream = io.BytesIO(b"a\n1\n")
    source = CsvInput("stdin", stream, TableFormat(), limit=100)
    assert rows_of(source.blocks()) == [Row(2, b'{"a":"1"}')]
    assert source.position() == 4
    source.close()
    assert not stream.closed


@pytest.fixture
def parquet(tmp_path: Path) -> str:
    table: Any = pa.table(
        {
            "id": pa.array([1, None, 3], pa.int64()),
            "name": ["a", "b", None],
            "raw": [b"\xff", b"", None],
            "at": [dt.datetime(2024, 1, 2), None, None],
        }
    )
    path = str(tmp_path / "x.parquet")
    pq.write_table(table, path)
    return path


def test_parquet_rows_as_json_and_by_column(parquet: str) -> None:
    source = ParquetInput(parquet, parquet, TableFormat("id"))
    assert (source.size, source.position()) == (3, 0)
    found = rows_of(source.blocks())
    assert source.position() == 3
    source.close()
    assert [(row.number, row.key) for row in found if isinstance(row, Row)] == [(1, b"1"), (2, None), (3, b"3")]
    assert isinstance(found[0], Row) and found[0].value is not None
    assert json.loads(found[0].value) == {"id": 1, "name": "a", "raw": "/w==", "at": "2024-01-02T00:00:00"}
    raw = ParquetInput(parquet, parquet, TableFormat(None, "raw"))
    assert [row.value for row in rows_of(raw.blocks()) if isinstance(row, Row)] == [b"\xff", b"", None]
    raw.close()


def test_parquet_gives_the_same_bytes_by_columns_as_by_cells(tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "id": pa.array([1, None, -3], pa.int64()),
        "name": ['a"\n\x01', "\u2028ä", None],
        "ok": [True, None, False],
        "day": pa.array([0, None, 19000], pa.date32()),
    }
    slow: dict[str, Any] = {"x": [1.0, None, float("nan")], "at": [dt.datetime(2024, 1, 2), None, None]}
    path = str(tmp_path / "x.parquet")
    for key, value in ((None, None), ("id", None), ("name", "id"), ("day", None)):
        pq.write_table(pa.table(columns), path)
        fast = rows_of(ParquetInput(path, path, TableFormat(key, value)).blocks())
        expected = [TableFormat(key, value).row(at, cells) for at, cells in enumerate(pa.table(columns).to_pylist(), 1)]
        assert fast == expected
    pq.write_table(pa.table({**columns, **slow}), path)
    whole = rows_of(ParquetInput(path, path, TableFormat()).blocks())
    assert isinstance(whole[0], Row) and whole[0].value is not None
    assert whole[0].value.endswith(b'"day":"1970-01-01","x":1.0,"at":"2024-01-02T00:00:00"}')


def test_parquet_that_cannot_be_read(parquet: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="--value-column 'x' is not among the columns id, name, raw, at"):
        ParquetInput(parquet, parquet, TableFormat(None, "x"))
    (tmp_path / "bad.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(CommandError, match="bad.parquet: cannot be read as Parquet"):
        ParquetInput("bad.parquet", str(tmp_path / "bad.parquet"), TableFormat())


LATE = 253_402_318_799_000_000
"""The last second of 9999 in New York, as microseconds; in UTC it is in 10000."""


def test_a_cell_without_a_value_is_one_bad_row(tmp_path: Path) -> None:
    """Python's classes end at 9999, and text in a file may be none."""
    columns = {
        "at": (pa.array([0, LATE], pa.int64()).cast(pa.timestamp("us", "America/New_York")), "out of range|date value"),
        "t": (pa.array([b"ok", b"\xff"], pa.binary()).view(pa.string()), "no text in UTF-8"),
        "day": (pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32()), "no form as text"),
        "s": (pa.StructArray.from_arrays([pa.array([b"ok", b"\xff"]).view(pa.string())], ["t"]), "t: .* no text"),
    }
    for name, (column, why) in columns.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({name: column}), path)
        good, bad = rows_of(ParquetInput("x", path, TableFormat()).blocks())
        assert isinstance(good, Row) and good.number == 1
        assert isinstance(bad, BadRow) and bad.number == 2 and re.search(f"column '{name}': .*({why})", bad.reason)


def test_fields_that_no_reader_could_tell_are_refused(tmp_path: Path) -> None:
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    metadata = {"ARROW:extension:name": "somebody.id"}
    for table, why in (
        (pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), "column 'a' is there more than once"),
        (pa.table({"s": twice}), "field 's.a' is there more than once"),
        (
            pa.table([pa.array([1])], schema=pa.schema([pa.field("n", pa.int64(), metadata=metadata)])),
            "column 'n' is the ext",
        ),
    ):
        pq.write_table(table, tmp_path / "x.parquet")
        with pytest.raises(CommandError, match=f"x.parquet: {why}"):
            ParquetInput("x.parquet", tmp_path / "x.parquet", TableFormat())
