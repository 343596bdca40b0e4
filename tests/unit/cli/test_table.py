"""cli.table: CSV and Parquet."""

from __future__ import annotations

import datetime as dt
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.cli.failure import CommandError
from forebay.cli.rows import BadRow, Row
from forebay.cli.table import CsvInput, ParquetInput, TableFormat


def rows(data: bytes, layout: TableFormat | None = None, limit: int = 1000) -> list[Row | BadRow]:
    source = CsvInput("x.csv", io.BytesIO(data), layout or TableFormat(), limit=limit, size=len(data), owned=True)
    found = list(source.rows())
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
        (b"id\n\xff\n", "x.csv: near line 1: not UTF-8", 1),
    ],
)
def test_csv_that_cannot_be_read_on(data: bytes, expected: str, code: int) -> None:
    with pytest.raises(CommandError, match=expected) as caught:
        rows(data, TableFormat("id" if b"a,b,a" not in data else None))
    assert caught.value.exit_code == code


def test_standard_input_stays_open() -> None:
    stream = io.BytesIO(b"a\n1\n")
    source = CsvInput("stdin", stream, TableFormat(), limit=100)
    assert list(source.rows()) == [Row(2, b'{"a":"1"}')]
    assert source.position() == 0
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
    source = ParquetInput(parquet, TableFormat("id"))
    assert (source.size, source.position()) == (3, 0)
    found = list(source.rows())
    assert source.position() == 3
    source.close()
    assert [(row.number, row.key) for row in found if isinstance(row, Row)] == [(1, b"1"), (2, None), (3, b"3")]
    assert isinstance(found[0], Row) and found[0].value is not None
    assert json.loads(found[0].value) == {"id": 1, "name": "a", "raw": "/w==", "at": "2024-01-02T00:00:00"}
    raw = ParquetInput(parquet, TableFormat(None, "raw"))
    assert [row.value for row in raw.rows() if isinstance(row, Row)] == [b"\xff", b"", None]
    raw.close()


def test_parquet_that_cannot_be_read(parquet: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="--value-column 'x' is not among the columns id, name, raw, at"):
        ParquetInput(parquet, TableFormat(None, "x"))
    (tmp_path / "bad.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(CommandError, match="bad.parquet: cannot be read as Parquet"):
        ParquetInput(str(tmp_path / "bad.parquet"), TableFormat())
