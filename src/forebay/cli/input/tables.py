"""Tables: CSV with a header row, and Parquet; a row becomes a JSON object, or one of its columns the value."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from forebay._arrow.checks import check_once
from forebay.cli.failure import FAILED, CommandError
from forebay.cli.input.blocks import Block, gathered, size_of
from forebay.cli.input.lines import StreamInput, too_long
from forebay.cli.input.rows import BadRow, Row, as_bytes, to_json
from forebay.errors import IllegalArgumentError
from forebay.serializers.rows import rows_as_json
from forebay.serializers.rows.tables import check_field
from forebay.serializers.rows.values import Refused, objects_of

ROWS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class TableFormat:
    """Which columns make key and value; without a value column the whole row is the value, as JSON."""

    key_column: str | None = None
    value_column: str | None = None
    separator: str = ","
    """Between the fields of CSV."""

    def check(self, name: str, columns: Sequence[str]) -> None:
        """Raises CommandError for a column the table does not have, and for a name it has twice."""
        for flag, wanted in (("--key-column", self.key_column), ("--value-column", self.value_column)):
            if wanted is not None and wanted not in columns:
                raise CommandError(f"{name}: {flag} {wanted!r} is not among the columns {', '.join(columns)}")
        try:
            check_once(columns)
        except IllegalArgumentError as error:
            raise CommandError(f"{name}: {error}") from None

    def row(self, number: int, cells: dict[str, Any]) -> Row | BadRow:
        """The record of one table row."""
        try:
            value = to_json(cells) if self.value_column is None else as_bytes(cells[self.value_column])
            return Row(number, value, None if self.key_column is None else as_bytes(cells[self.key_column]))
        except ValueError as error:
            return BadRow(number, f"cannot be written as UTF-8: {error}")


class _LineTooLongError(Exception):
    """The next line is longer than a record may be, and is not held."""


class _Lines:
    """The lines of a stream of UTF-8 for ``csv.reader``, which takes several for a row with line breaks."""

    def __init__(self, read: Callable[[], bytes], limit: int) -> None:
        self._chunk = read
        self._limit = limit
        self._ready: deque[bytes] = deque()
        self._rest = bytearray()
        self._ended = False

    @property
    def ready(self) -> bool:
        """Whether the next line is there without a read."""
        return bool(self._ready)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        while not self._ready:
            if self._ended:
                raise StopIteration
            self._read()
        return self._ready.popleft().decode()

    def _read(self) -> None:
        if len(self._rest) > self._limit:
            raise _LineTooLongError
        chunk = self._chunk()
        self._ended = not chunk
        self._rest += chunk
        if self._ended or b"\n" in chunk or b"\r" in chunk:
            lines = bytes(self._rest).splitlines(keepends=True)
            # A carriage return at the end may be half of a line's end.
            whole = self._ended or not lines or lines[-1].endswith(b"\n")
            self._rest = bytearray(b"" if whole else lines.pop())
            self._ready.extend(lines)


class CsvInput(StreamInput):
    """The rows of CSV in UTF-8; the first names the columns, and every cell is text."""

    def __init__(self, name: str, stream: Any, layout: TableFormat, *, limit: int, **reading: Any) -> None:
        super().__init__(name, stream, limit=limit, **reading)
        self._format = layout
        # The limit is the csv module's own, for the whole process: an open quote must not swallow the file.
        csv.field_size_limit(limit)

    def blocks(self) -> Iterator[Block | BadRow]:
        """Each row below the header, numbered by the line it ends on; blank lines are passed over."""
        lines = _Lines(self.chunk, self._limit)
        reader = csv.reader(lines, strict=True, delimiter=self._format.separator)
        columns = self._next(reader)
        if columns is None:
            raise CommandError(f"{self.name}: no header row; the first line of CSV names the columns")
        self._format.check(self.name, columns)
        while (cells := self._next(reader)) is not None:
            yield from gathered(self._rows(cells, columns, reader, lines))

    def _rows(self, cells: list[str] | None, columns: list[str], reader: Any, lines: _Lines) -> Iterator[Row | BadRow]:
        """The row of ``cells``, and those behind it that are there without a read."""
        while cells is not None:
            if len(cells) == len(columns):
                yield self._format.row(reader.line_num, dict(zip(columns, cells, strict=True)))
            elif cells:
                yield BadRow(reader.line_num, f"{len(cells)} fields, but the header has {len(columns)}")
            if not lines.ready:
                return
            cells = self._next(reader)

    def _next(self, reader: Any) -> list[str] | None:
        try:
            return next(reader, None)
        except csv.Error as error:
            # After a broken quote the begin of the next row is not known.
            raise CommandError(f"{self.name}:{reader.line_num}: not CSV: {error}", FAILED) from None
        except UnicodeDecodeError as error:
            raise CommandError(f"{self.name}:{reader.line_num + 1}: not UTF-8 ({error.reason})", FAILED) from None
        except _LineTooLongError:
            why = too_long("line", self._limit)
            raise CommandError(f"{self.name}:{reader.line_num + 1}: {why}", FAILED) from None


class ParquetInput:
    """The rows of a Parquet file, a few thousand at a time; as Arrow columns where their types allow it.

    Args:
        name: as messages show it.
        file: its path, or an open file.
    """

    def __init__(self, name: str, file: Any, layout: TableFormat) -> None:
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError:
            raise CommandError(f"{name}: reading Parquet needs pyarrow: pip install pyarrow") from None
        self.name = name
        self._format = layout
        self._errors = (pa.ArrowException, OSError)
        self._done = 0
        try:
            self._file: Any = parquet.ParquetFile(file)
        except self._errors as error:
            raise CommandError(f"{name}: cannot be read as Parquet: {error}") from None
        self.size: int | None = self._file.metadata.num_rows
        layout.check(name, self._file.schema_arrow.names)
        try:
            for field in self._file.schema_arrow:
                check_field(field)
        except IllegalArgumentError as error:
            raise CommandError(f"{name}: {error}") from None

    def position(self) -> int:
        """Rows read so far."""
        return self._done

    def close(self) -> None:
        """Closes the file."""
        self._file.close(force=True)

    def blocks(self) -> Iterator[Block | BadRow]:
        """Each row, numbered from 1."""
        try:
            for batch in self._file.iter_batches(ROWS_AT_ONCE):
                numbers = range(self._done + 1, self._done + 1 + batch.num_rows)
                columns = self._columns(batch)
                if columns is not None:
                    value, key = columns
                    yield Block(numbers, value, size_of(value) + size_of(key), key)
                else:
                    yield from gathered(self._rows(batch, numbers))
                self._done += batch.num_rows
        except self._errors as error:
            why = f"after row {self._done}: cannot be read as Parquet: {error}"
            raise CommandError(f"{self.name}: {why}", FAILED) from None

    def _rows(self, batch: Any, numbers: range) -> Iterator[Row | BadRow]:
        """The rows cell by cell; the first cell that has no value in Python makes a bad row."""
        columns = [(name, objects_of(column)) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
        for at, number in enumerate(numbers):
            cells = {name: column[at] for name, column in columns}
            bad = next((f"column {name!r}: {cell}" for name, cell in cells.items() if isinstance(cell, Refused)), None)
            yield self._format.row(number, cells) if bad is None else BadRow(number, bad)

    def _columns(self, batch: Any) -> tuple[Any, Any] | None:
        """Values and keys as columns, if that gives the same bytes as cell by cell."""
        layout = self._format
        key = None if layout.key_column is None else _text(batch.column(layout.key_column))
        if layout.key_column is not None and key is None:
            return None
        if layout.value_column is not None:
            value = _text(batch.column(layout.value_column))
            return None if value is None else (value, key)
        if all(_is_same_in_json(column.type) for column in batch.columns):
            try:
                return rows_as_json(batch).combine_chunks(), key
            except IllegalArgumentError:
                return None  # a value that has no form; cell by cell it is one bad row
        return None


def _text(column: Any) -> Any:
    """The column as one that ``send_batch`` takes; None if its cells are not text, bytes or integers."""
    import pyarrow as pa

    kind, types = column.type, pa.types
    if types.is_integer(kind):
        return column.cast(pa.string())
    plain = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return column if any(check(kind) for check in plain) else None


def _is_same_in_json(kind: Any) -> bool:
    """Whether ``rows_as_json`` writes the type as ``to_json`` does: not floats, decimals and times."""
    import pyarrow as pa

    types = pa.types
    plain = (types.is_string, types.is_large_string, types.is_integer, types.is_boolean, types.is_null, types.is_date32)
    return any(check(kind) for check in plain)
