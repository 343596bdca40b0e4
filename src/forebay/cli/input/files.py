"""Files and standard input of ``forebay produce``: checked before anything is sent, opened one after the other."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from forebay.cli.failure import FAILED, CommandError
from forebay.cli.input import compressed
from forebay.cli.input.blocks import Input
from forebay.cli.input.jsonl import JsonFormat, JsonInput
from forebay.cli.input.lines import CHUNK, LineFormat, LineInput, WholeInput
from forebay.cli.input.tables import CsvInput, ParquetInput, TableFormat

STDIN = "-"
STDIN_NAME = "stdin"
FORMATS = ("lines", "json", "csv", "parquet", "whole")
SUFFIXES = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_TAB_SEPARATED = ".tsv"


@dataclass(frozen=True, slots=True)
class Layout:
    """How inputs are read, each format with its own settings."""

    form: str | None = None
    """One of FORMATS; None goes by each file's suffix."""
    lines: LineFormat = field(default_factory=LineFormat)
    json: JsonFormat = field(default_factory=JsonFormat)
    table: TableFormat = field(default_factory=TableFormat)
    decompress: bool = True
    """Files whose names say that they are compressed are read as what they hold."""
    limit: int = 1 << 20
    """Bytes beyond which a line or cell cannot be a record."""

    def form_of(self, path: str) -> str:
        """The format of one input."""
        return self.form or SUFFIXES.get(Path(compressed.without_suffix(path)).suffix.lower(), "lines")


def is_typed() -> bool:
    """Whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def check(paths: Sequence[str], layout: Layout) -> None:
    """Checks every input before the first record is sent.

    Raises:
        CommandError: one is missing, closed, a folder, or not readable.
    """
    for path in paths:
        if path == STDIN:
            if sys.stdin is None:
                raise CommandError("standard input cannot be read: it is closed")
            continue
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            raise CommandError(f"file {path!r} cannot be read: {error.strerror}") from None
        if stat.S_ISDIR(mode):
            raise CommandError(f"file {path!r} cannot be read: Is a directory")
        if not os.access(path, os.R_OK):
            raise CommandError(f"file {path!r} cannot be read: Permission denied")
    _check_flags(paths, layout)


def _check_flags(paths: Sequence[str], layout: Layout) -> None:
    """Refuses a flag that no input uses."""
    forms = {layout.form_of(path) for path in paths}
    tables = forms & {"csv", "parquet"}
    wanted: dict[str, tuple[Any, Any]] = {
        "--key-field (for JSON)": (layout.json.key_field, "json" in forms),
        "--envelope (for JSON)": (layout.json.envelope, "json" in forms),
        "--key-column (for CSV and Parquet)": (layout.table.key_column, tables),
        "--value-column (for CSV and Parquet)": (layout.table.value_column, tables),
        "-D (for lines)": (layout.lines.delimiter != LineFormat().delimiter, "lines" in forms),
        "-K (for lines)": (layout.lines.key_delimiter, "lines" in forms),
        "parse.headers (for lines)": (layout.lines.headers, "lines" in forms),
        "null.marker (for lines)": (layout.lines.null_marker, "lines" in forms),
        "--separator (for CSV)": (layout.table.separator != TableFormat().separator, "csv" in forms),
    }
    for flag, (given, heeded) in wanted.items():
        if given and not heeded:
            raise CommandError(f"{flag} has no use here: the input is {' and '.join(sorted(forms))}")


def open_all(paths: Sequence[str], layout: Layout) -> Generator[Input, None, None]:
    """Yields one input after the other; closes the previous one first.

    Raises:
        CommandError: it cannot be opened, or is not what its format says.
    """
    for path in paths:
        source = open_one(path, layout)
        try:
            yield source
        finally:
            source.close()


def open_one(path: str, layout: Layout) -> Input:
    """The input of one file, or of standard input for ``-``."""
    form = layout.form_of(path)
    if form == "parquet" and path != STDIN and compressed.without_suffix(path) == path:
        return ParquetInput(path, path, layout.table)
    name, stream, size = _open(path)
    if layout.decompress and path != STDIN:
        stream = compressed.opened(path, stream)
    if form == "parquet":
        with contextlib.closing(stream) if path != STDIN else contextlib.nullcontext():
            file = _spooled(name, stream)
        try:
            return ParquetInput(name, file, layout.table)
        except BaseException:
            file.close()
            raise
    reading: dict[str, Any] = {"limit": layout.limit, "size": size, "owned": path != STDIN}
    if form == "csv":
        table = layout.table
        if compressed.without_suffix(path).lower().endswith(_TAB_SEPARATED):
            table = TableFormat(table.key_column, table.value_column, "\t")
        return CsvInput(name, stream, table, **reading)
    if form == "whole":
        return WholeInput(name, stream, **reading)
    if form == "json":
        whole = LineInput(name, stream, LineFormat(), **reading)
        return JsonInput(whole, layout.json)
    return LineInput(name, stream, layout.lines, **reading)


def _spooled(name: str, stream: Any) -> BinaryIO:
    """A temporary file with all of the stream: Parquet is read from its end."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 -- the input closes it
    try:
        while chunk := stream.read1(CHUNK):
            file.write(chunk)
        file.seek(0)
    except BaseException as error:
        file.close()
        if isinstance(error, OSError):
            raise CommandError(f"{name}: cannot be kept as a temporary file: {error.strerror}", FAILED) from None
        raise
    return file


def _open(path: str) -> tuple[str, Any, int | None]:
    if path == STDIN:
        return STDIN_NAME, sys.stdin.buffer, None
    try:
        stream = open(path, "rb")  # noqa: SIM115 -- the input that gets it closes it
        found = os.fstat(stream.fileno())
        # A named pipe's size is always 0.
        size = found.st_size if stat.S_ISREG(found.st_mode) else None
    except OSError as error:
        raise CommandError(f"file {path!r} cannot be read: {error.strerror}") from None
    return path, stream, size
