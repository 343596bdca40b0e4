"""What every input hands to the producer: blocks of adjacent records as columns, and places that make no record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from forebay.cli.failure import CommandError
from forebay.cli.input.rows import BadRow, HeaderPairs, Row


@dataclass(frozen=True, slots=True)
class Block:
    """Adjacent records to be.  A column that is None is null in every row; the others have a cell for each row."""

    numbers: Sequence[int]
    """The place of each record in the input: a line's or row's number, from 1."""
    values: Any
    """A list of bytes and None, or an Arrow array of text or bytes."""
    size: int
    """Bytes of all keys and values."""
    keys: Any = None
    """As the values."""
    headers: list[HeaderPairs] | None = None
    partitions: list[int | None] | None = None
    timestamps: list[int | None] | None = None
    """In ms."""

    def part(self, begin: int, end: int) -> Block:
        """Rows ``begin`` to ``end`` - 1."""
        if begin == 0 and end >= len(self.numbers):
            return self
        cut = slice(begin, end)
        columns = {
            name: column[cut]
            for name in ("numbers", "values", "keys", "headers", "partitions", "timestamps")
            if (column := getattr(self, name)) is not None
        }
        made = replace(self, **columns)
        return replace(made, size=size_of(made.values) + size_of(made.keys))

    def size_at(self, rows: Iterable[int]) -> int:
        """Bytes of the keys and values of some rows."""
        chosen = list(rows)
        return sum(size_of([_cell(column, row) for row in chosen]) for column in (self.values, self.keys))

    def filled(self, key: bytes | None, headers: HeaderPairs, *, empty_is_null: bool) -> Block:
        """The block with what the command line says of every record.

        Args:
            key: of rows that have none.
            headers: added to each row's own.
            empty_is_null: empty keys and values become null; before the key is filled in.
        """
        made, rows = self, len(self.numbers)
        if empty_is_null:
            made = replace(made, values=_without_empty(made.values), keys=_without_empty(made.keys))
        if key is not None:
            own = [None] * rows if made.keys is None else _listed(made.keys)
            more = own.count(None) * len(key)
            made = replace(made, keys=[key if cell is None else cell for cell in own], size=made.size + more)
        if headers:
            before = [()] * rows if made.headers is None else made.headers
            made = replace(made, headers=[[*each, *headers] for each in before])
        return made


class Input(Protocol):
    """An input that is read once, from the first row to the last, in bounded memory."""

    name: str
    """As messages show it."""
    size: int | None
    """The size of the input, in the units of ``position``; None if it is not known."""

    def position(self) -> int:
        """How much of it was read."""
        ...

    def blocks(self) -> Iterator[Block | BadRow]:
        """Every row, in order.  A block ends where more input would have to be waited for.

        Raises:
            CommandError: the input as a whole cannot be read any further.
        """
        ...

    def close(self) -> None:
        """Lets go of the file; standard input stays open."""
        ...


def gathered(rows: Iterable[Row | BadRow]) -> Iterator[Block | BadRow]:
    """Rows that were made one by one, as blocks between the bad ones; also if the input then ends with an error."""
    some: list[Row] = []
    failure: CommandError | None = None
    try:
        for row in rows:
            if isinstance(row, Row):
                some.append(row)
                continue
            if some:
                yield _of_rows(some)
                some = []
            yield row
    except CommandError as error:
        failure = error
    if some:
        yield _of_rows(some)
    if failure is not None:
        raise failure


def size_of(column: Any) -> int:
    """Bytes of all cells of a column of values or keys."""
    if column is None:
        return 0
    if isinstance(column, list):
        return sum(len(cell) for cell in column if cell is not None)
    import pyarrow.compute as pc

    return pc.sum(pc.binary_length(column)).as_py() or 0


def cells_of(column: Any) -> list[bytes | None]:
    """The cells of a column of values or keys, each as bytes."""
    return [cell.encode() if isinstance(cell, str) else cell for cell in _listed(column)]


def _of_rows(rows: list[Row]) -> Block:
    numbers, values, keys, headers, partitions, timestamps = (list(column) for column in zip(*rows, strict=True))
    return Block(
        numbers,
        values,
        size_of(values) + size_of(keys),
        keys if any(key is not None for key in keys) else None,
        headers if any(headers) else None,
        partitions if any(partition is not None for partition in partitions) else None,
        timestamps if any(timestamp is not None for timestamp in timestamps) else None,
    )


def _cell(column: Any, row: int) -> bytes | None:
    if column is None:
        return None
    cell: Any = column[row]
    if cell is None or isinstance(cell, bytes):
        return cell
    return cell.as_buffer().to_pybytes() if cell.is_valid else None


def _listed(column: Any) -> list[Any]:
    return column if isinstance(column, list) else column.to_pylist()


def _without_empty(column: Any) -> Any:
    return None if column is None else [cell or None for cell in _listed(column)]
