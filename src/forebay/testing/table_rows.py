"""A table row by row, as ``MockProducer.send_batch`` takes it: slow, and without the producer's own columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from forebay._arrow.checks import check_once
from forebay.errors import IllegalArgumentError
from forebay.model._arguments import IfThere
from forebay.producer._columns.table_pieces import names_of
from forebay.serializers.rows.tables import as_table

KEY, HEADERS, PARTITION, TIMESTAMP = map(IfThere, ("key", "headers", "partition", "timestamp"))
FUNCTION = "MockProducer.send_batch"
PARTS = ("value", "key", "headers", "partition", "timestamp", "topic")
"""Of a row, in the order of ``send_batch``'s arguments."""


def rows_of(table: Any, *chosen: Any) -> Iterator[dict[str, Any]]:
    """The arguments of a record for each row.

    Args:
        chosen: for each of ``PARTS`` a column's name, the column itself, a function of the table, one number for all
            rows, or None.

    Raises:
        IllegalArgumentError: a column is missing, or shorter than the others.
        TypeError: no table, or a key or value that is neither bytes nor text.
        KafkaError: an Arrow table, without pyarrow.
    """
    named = _named(table, {one for one in chosen if isinstance(one, str)})
    taken = {part: _column(part, table, named, one) for part, one in zip(PARTS, chosen, strict=True)}
    length = max((len(column) for column in named.values()), default=0)
    for part, column in taken.items():
        if isinstance(column, list) and len(column) != length:
            raise IllegalArgumentError(f"send_batch: {part} has {len(column)} rows, the table has {length}")
    for row in range(length):
        cells = {part: column[row] if isinstance(column, list) else column for part, column in taken.items()}
        cells["headers"] = _pairs(cells["headers"])
        for part in ("value", "key"):
            cells[part] = _bytes(part, row, cells[part])
        yield cells


def _named(table: Any, wanted: set[str]) -> dict[str, Any]:
    if isinstance(table, (list, tuple)):
        return {"value": list(table)}
    if isinstance(table, Mapping):
        check_once(map(str, table))
        return {str(name): _listed(column) for name, column in table.items()}
    if not hasattr(table, "__arrow_c_stream__") and not hasattr(table, "__arrow_c_array__"):
        raise TypeError(
            f"MockProducer.send_batch takes a list, a dict of lists or an Arrow table, not {type(table).__name__}"
        )
    if hasattr(table, "to_pylist") and not hasattr(table, "schema"):
        return {"value": table.to_pylist()}
    names = names_of(table)
    found = as_table(FUNCTION, table, None if names is None else [name for name in names if name in wanted] or None)
    return dict(zip(found.column_names, found.columns, strict=True))


def _column(part: str, table: Any, named: dict[str, list[Any]], chosen: Any) -> Any:
    if (
        chosen is None
        or (isinstance(chosen, int) and part in ("partition", "timestamp"))
        or hasattr(chosen, "utcoffset")
    ):
        return chosen
    if isinstance(chosen, str):
        if chosen in named:
            return _listed(named[chosen])
        if isinstance(chosen, IfThere):
            return None
        columns = ", ".join(names_of(table) or named)
        raise IllegalArgumentError(f"send_batch: column {chosen!r} is missing; columns: {columns}")
    return _listed(chosen(table) if callable(chosen) else chosen)


def _listed(column: Any) -> list[Any]:
    for name in ("to_pylist", "tolist", "to_list"):
        if hasattr(column, name):
            found: list[Any] = getattr(column, name)()
            return found
    return list(column)


def _bytes(part: str, row: int, cell: Any) -> bytes | None:
    if cell is None or isinstance(cell, bytes):
        return cell
    if isinstance(cell, str):
        return cell.encode()
    if isinstance(cell, (bytearray, memoryview)):
        return bytes(cell)
    raise TypeError(f"send_batch: {part}, row {row}: {type(cell).__name__} is not allowed; allowed: bytes, str, None")


def _pairs(headers: Any) -> Any:
    """Arrow's maps are lists of pairs, and its structs are dicts of key and value."""
    if headers is None:
        return ()
    return [tuple(pair.values()) if isinstance(pair, dict) else pair for pair in headers]
