"""What a table is for this package: named columns of Arrow, and their values as Python's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from forebay.errors import IllegalArgumentError, KafkaError


def arrow(function: str) -> Any:
    """The package pyarrow.

    Raises:
        KafkaError: it is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise KafkaError(f"{function} needs the package pyarrow: pip install pyarrow") from error
    return pa


def as_table(function: str, table: Any, columns: Iterable[str] | None) -> Any:
    """The table as Arrow's, with these columns alone; ``function`` is what the user called.

    Raises:
        TypeError: it is no table.
        IllegalArgumentError: a column is missing, or there is none.
        KafkaError: pyarrow is not installed.
    """
    pa = arrow(function)
    try:
        if isinstance(table, pa.RecordBatch):
            taken = pa.Table.from_batches([table])
        else:
            taken = table if isinstance(table, pa.Table) else pa.table(table)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise TypeError(f"{function} takes a table with named columns; got {type(table).__name__}: {error}") from error
    if columns is not None:
        names = list(columns)
        for name in names:
            if name not in taken.column_names:
                raise IllegalArgumentError(
                    f"{function}: column {name!r} is missing; columns: {', '.join(taken.column_names)}"
                )
        taken = taken.select(names)
    if not taken.column_names:
        raise IllegalArgumentError(f"{function}: the table has no column")
    return taken


def values_of(column: Any) -> list[Any]:
    """The column as Python's values, structs as dicts.

    Field by field: Arrow's own way makes an object of Arrow for each field of each row.
    """
    import pyarrow as pa

    if not pa.types.is_struct(column.type) or not column.type.num_fields:
        return column.to_pylist(maps_as_pydicts="strict")  # type: ignore[no-any-return]
    names = [field.name for field in column.type]
    rows = zip(*(values_of(field) for field in column.flatten()), strict=True)
    made = [dict(zip(names, row, strict=True)) for row in rows]
    if not column.null_count:
        return made
    return [value if there else None for value, there in zip(made, column.is_valid().to_pylist(), strict=True)]
