"""cli.input.files: formats by suffix, and everything that can be refused before the first record."""

from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.cli.failure import CommandError
from forebay.cli.input.files import Layout, check, open_all, open_one
from forebay.cli.input.jsonl import JsonFormat, JsonInput
from forebay.cli.input.lines import LineFormat, LineInput
from forebay.cli.input.rows import BadRow, Row
from forebay.cli.input.tables import CsvInput, TableFormat
from tests.unit.cli.fakes import rows_of


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("a.txt", "lines"),
        ("-", "lines"),
        ("a.JSONL", "json"),
        ("a.json", "json"),
        ("a.tsv", "csv"),
        ("a.pq", "parquet"),
    ],
)
def test_the_suffix_says_the_format_unless_a_flag_does(path: str, form: str) -> None:
    assert Layout().form_of(path) == form
    assert Layout("csv").form_of(path) == "csv"


def test_each_input_is_opened_in_its_turn_and_closed_after_it(tmp_path: Path) -> None:
    for name, text in (("a.txt", "x\n"), ("b.json", "1\n"), ("c.tsv", "k\tv\n1\t2\n")):
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in ("a.txt", "b.json", "c.tsv")]
    kinds, sizes, found = [], [], []
    for source in open_all(paths, Layout(table=TableFormat("k"))):
        kinds.append(type(source))
        sizes.append(source.size)
        found += rows_of(source.blocks())
    assert kinds == [LineInput, JsonInput, CsvInput]
    assert sizes == [2, 2, 8]
    assert found == [Row(1, b"x"), Row(1, b"1"), Row(2, b'{"k":"1","v":"2"}', b"1")]


def test_a_pipe_has_no_size(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    try:
        os.write(writer, b"x\n")
        source = open_one(str(path), Layout())
        assert source.size is None
        assert rows_of([next(source.blocks())]) == [Row(1, b"x")]
        source.close()
    finally:
        os.close(writer)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="file '.*none' cannot be read: No such file or directory"):
        check([str(tmp_path / "none")], Layout())
    with pytest.raises(CommandError, match="Is a directory"):
        check([str(tmp_path)], Layout())
    with pytest.raises(CommandError, match="No such file"):
        open_one(str(tmp_path / "gone"), Layout())


@pytest.mark.parametrize(
    ("layout", "flag"),
    [
        (Layout("csv", json=JsonFormat("id")), "--key-field"),
        (Layout("lines", json=JsonFormat(envelope=True)), "--envelope"),
        (Layout("json", table=TableFormat("id")), "--key-column"),
        (Layout("lines", table=TableFormat(None, "v")), "--value-column"),
        (Layout("json", LineFormat(key_delimiter=b":")), "-K"),
        (Layout("csv", LineFormat(b";")), "-D"),
        (Layout("json", LineFormat(null_marker=b"NULL")), "null.marker"),
        (Layout("parquet", table=TableFormat(separator=";")), "--separator"),
    ],
)
def test_a_flag_that_no_input_heeds_is_refused(layout: Layout, flag: str) -> None:
    with pytest.raises(CommandError, match=rf"{flag} \(for .*\) has no use here: the input is {layout.form}"):
        check(["-"], layout)


def test_compressed_files_have_the_format_of_the_name_before_it(tmp_path: Path) -> None:
    found: dict[str, list[Row | BadRow]] = {}
    for name, data in (("a.txt.gz", b"x\n"), ("b.JSONL.GZ", b"1\n"), ("c.tsv.gz", b"k\tv\n1\t2\n"), ("d.gz", b"y")):
        (tmp_path / name).write_bytes(gzip.compress(data))
        source = open_one(str(tmp_path / name), Layout())
        assert source.size == (tmp_path / name).stat().st_size
        found[name] = rows_of(source.blocks())
        assert source.position() == source.size
        source.close()
    assert found == {
        "a.txt.gz": [Row(1, b"x")],
        "b.JSONL.GZ": [Row(1, b"1")],
        "c.tsv.gz": [Row(2, b'{"k":"1","v":"2"}')],
        "d.gz": [Row(1, b"y")],
    }


def test_parquet_from_standard_input_and_from_a_compressed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table: Any = pa.table({"id": [1, 2]})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    (tmp_path / "x.parquet.gz").write_bytes(gzip.compress(sink.getvalue()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sink.getvalue())))
    for path, layout in (("-", Layout("parquet")), (str(tmp_path / "x.parquet.gz"), Layout())):
        check([path], layout)
        source = open_one(path, layout)
        assert rows_of(source.blocks()) == [Row(1, b'{"id":1}'), Row(2, b'{"id":2}')]
        source.close()
    assert not sys.stdin.buffer.closed
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"no")))
    with pytest.raises(CommandError, match="stdin: cannot be read as Parquet"):
        open_one("-", Layout("parquet"))


def test_flags_that_one_of_several_inputs_heeds_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("1\n")
    layout = Layout(lines=LineFormat(key_delimiter=b":"), json=JsonFormat("id"))
    check(["-", str(path)], layout)
    assert {layout.form_of(each) for each in ("-", str(path))} == {"lines", "json"}
