"""Tables: CSV with a header row, and Parquet; a row becomes a JSON object, or one of its columns the value."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from forebay.cli.failure import CommandError
from forebay.cli.rows import BadRow, Row, as_bytes, to_json

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
        for column in columns:
            if columns.count(column) > 1:
                raise CommandError(f"{name}: column {column!r} is there more than once")

    def row(self, number: int, cells: dict[str, Any]) -> Row | BadRow:
        """The record of one table row."""
        try:
            value = to_json(cells) if self.value_column is None else as_bytes(cells[self.value_column])
            return Row(number, value, None if self.key_column is None else as_bytes(cells[self.key_column]))
        except ValueError as error:
            return BadRow(number, f"cannot be written as UTF-8: {error}")


class CsvInput:
    """The rows of CSV in UTF-8; the first names the columns, and every cell is text."""

    def __init__(
        self, name: str, stream: Any, layout: TableFormat, *, limit: int, size: int | None = None, owned: bool = False
    ) -> None:
        self.name = name
        self.size = size
        self._owned = owned
        self._stream = stream
        self._format = layout
        # The limit is the csv module's own, for the whole process: an open quote must not swallow the file.
        csv.field_size_limit(limit)
        self._text = io.TextIOWrapper(stream, "utf-8-sig", newline="")

    def position(self) -> int:
        """Bytes read so far."""
        return 0 if self.size is None else int(self._stream.tell())

    def close(self) -> None:
        """Closes the stream where it is ours: standard input is not."""
        if self._owned:
            self._text.close()
        else:
            self._text.detach()

    def rows(self) -> Iterator[Row | BadRow]:
        """Each row below the header, numbered by the line it ends on; blank lines are passed over."""
        reader = csv.reader(self._text, strict=True, delimiter=self._format.separator)
        columns = self._next(reader)
        if columns is None:
            raise CommandError(f"{self.name}: no header row; the first line of CSV names the columns")
        self._format.check(self.name, columns)
        while (cells := self._next(reader)) is not None:
            if len(cells) == len(columns):
                yield self._format.row(reader.line_num, dict(zip(columns, cells, strict=True)))
            elif cells:
                yield BadRow(reader.line_num, f"{len(cells)} fields, but the header has {len(columns)}")

    def _next(self, reader: Any) -> list[str] | None:
        try:
            return next(reader, None)
        except csv.Error as error:
            # After a broken quote the begin of the next row is not known.
            raise CommandError(f"{self.name}:{reader.line_num}: not CSV: {error}", 1) from None
        except UnicodeDecodeError as error:
            raise CommandError(f"{self.name}: near line {reader.line_num + 1}: not UTF-8 ({error.reason})", 1) from None


class ParquetInput:
    """The rows of a Parquet file, a few thousand at a time."""

    def __init__(self, path: str, layout: TableFormat) -> None:
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError:
            raise CommandError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
        self.name = path
        self._format = layout
        self._errors = (pa.ArrowException, OSError)
        self._done = 0
        try:
            self._file: Any = parquet.ParquetFile(path)
        except self._errors as error:
            raise CommandError(f"{path}: cannot be read as Parquet: {error}") from None
        self.size: int | None = self._file.metadata.num_rows
        layout.check(path, self._file.schema_arrow.names)

    def position(self) -> int:
        """Rows read so far."""
        return self._done

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def rows(self) -> Iterator[Row | BadRow]:
        """Each row, numbered from 1."""
        try:
            for batch in self._file.iter_batches(ROWS_AT_ONCE):
                for number, cells in enumerate(batch.to_pylist(), self._done + 1):
                    yield self._format.row(number, cells)
                self._done += batch.num_rows
        except self._errors as error:
            raise CommandError(f"{self.name}: after row {self._done}: cannot be read as Parquet: {error}", 1) from None
