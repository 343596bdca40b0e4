"""What a table is for this package: named columns of Arrow in plain layouts, whoever made it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from forebay._arrow.checks import EXTENSION, check_once, foreign, own_types
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
        IllegalArgumentError: a column is missing, is there twice, cannot be made one of Arrow, or only its library can
            read it; or there is no column.
        KafkaError: pyarrow is not installed.
    """
    pa = arrow(function)
    with named(function):
        own = own_types(table)
        taken = _taken(pa, function, table, own)
        names = taken.column_names if columns is None else list(columns)
        for name in names:
            if name not in taken.column_names:
                raise IllegalArgumentError(f"column {name!r} is missing; columns: {', '.join(taken.column_names)}")
        check_once(name for name in taken.column_names if name in names)
        check_once(names)
        if not names:
            raise IllegalArgumentError("the table has no column")
        for name in names:
            if name in own:
                raise foreign(name, *own[name])
        if columns is not None:
            taken = taken.select(names)
        for field in taken.schema:
            check_field(field)
    return taken


@contextmanager
def named(function: str) -> Iterator[None]:
    """Errors of arguments begin with what the user called."""
    try:
        yield
    except IllegalArgumentError as error:
        raise IllegalArgumentError(f"{function}: {error}") from error.__cause__


def reason(error: BaseException) -> str:
    """What another library says of a table or a value, as one line."""
    if isinstance(error, UnicodeDecodeError):
        return f"{error.object[:40]!r} is no text in UTF-8"
    return " ".join(str(error).split()) or type(error).__name__


def _taken(pa: Any, function: str, table: Any, own: Mapping[str, tuple[str, str]]) -> Any:
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, Mapping):
        check_once(map(str, table))
        table = {str(name): _column(pa, str(name), cells) for name, cells in table.items()}
    try:
        return pa.table(table)
    except Exception as error:
        # A library may raise anything when it is asked for its data.
        for name, kind in own.items():
            raise foreign(name, *kind) from error
        what = type(table).__name__
        if isinstance(table, Mapping) or hasattr(table, "columns") or hasattr(table, "schema"):
            check_once(map(str, getattr(table, "columns", ())))
            raise IllegalArgumentError(f"{what} cannot be made a table of Arrow: {reason(error)}") from error
        raise TypeError(f"{function} takes a table with named columns; got {what}: {reason(error)}") from error


def _column(pa: Any, name: str, cells: Any) -> Any:
    for kind in own_types(cells, name).values():
        raise foreign(name, *kind)
    try:
        return cells if isinstance(cells, (pa.Array, pa.ChunkedArray)) else pa.array(cells)
    except Exception as error:
        raise IllegalArgumentError(f"column {name!r} cannot be made one of Arrow: {reason(error)}") from error


def check_field(field: Any, path: str = "") -> None:
    """Refuses what no reader could tell, in a field of Arrow and in all that are in it.

    Raises:
        IllegalArgumentError: two fields of a struct have one name, or only its library can read the column.
    """
    where = f"{path}.{field.name}".lstrip(".")
    extension = (field.metadata or {}).get(EXTENSION)
    if extension is not None:
        # Arrow itself does not know the type, else the metadata would be gone.
        raise foreign(where, f"the extension type {extension.decode(errors='replace')!r}")
    kind = field.type
    fields = [kind.field(at) for at in range(kind.num_fields)]
    if not hasattr(kind, "value_type") and not hasattr(kind, "item_type"):
        check_once((f"{where}.{inner.name}" for inner in fields), "field")
    for inner in fields:
        check_field(inner, where)


def bare(kind: Any) -> Any:
    """The type of Arrow without the layouts that say the same in fewer bytes: dictionaries, runs."""
    import pyarrow as pa

    while pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    return kind


def plain(column: Any) -> Any:
    """The column in a layout that all functions of Arrow take: no dictionary, no runs, no views of text or bytes."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        chunks = [plain(chunk) for chunk in column.chunks]
        return pa.chunked_array(chunks, chunks[0].type) if chunks else plain(pa.nulls(0, column.type))
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return _wide(pa, plain(column.dictionary)).take(column.indices)
    if types.is_run_end_encoded(kind):
        # Their numbers are decoded instead of the values: not all types can be.
        numbers = pa.array(range(len(column.values)), pa.int64())
        runs = pa.RunEndEncodedArray.from_arrays(column.run_ends, numbers).slice(column.offset, len(column))
        return _wide(pa, plain(column.values)).take(pa.compute.run_end_decode(runs))
    if str(kind) == "string_view":
        return column.cast(pa.large_string())
    return column.cast(pa.large_binary()) if str(kind) == "binary_view" else column


def _wide(pa: Any, values: Any) -> Any:
    """Values that many rows refer to, with room for all of them: 32-bit offsets might not do."""
    if pa.types.is_string(values.type):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pa.types.is_binary(values.type) else values
