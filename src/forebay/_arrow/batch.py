"""Objects with Arrow's C data interface, opened: record batches, single arrays, and streams of either.

pyarrow is not needed: the addresses that pyarrow, polars, arro3, nanoarrow ... hand out are enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cython
from cython.cimports.forebay._arrow.abi import (
    array_buffer,
    array_child,
    array_length,
    array_offset,
    array_released,
    bit_at,
    capsule_address,
    drop_array,
    drop_schema,
    new_array,
    new_schema,
    schema_child,
    schema_child_count,
    schema_format,
    schema_name,
    stream_error,
    stream_next,
    stream_schema,
)

from forebay._arrow.columns import BytesColumn, Column, bytes_column
from forebay._arrow.headers import HeadersColumn, headers_column
from forebay._arrow.numbers import IntColumn, TimestampColumn, int_column, timestamp_column
from forebay.errors import IllegalArgumentError


def speaks_arrow(source: object) -> bool:
    """Whether an object has the methods of the C data interface."""
    return hasattr(source, "__arrow_c_array__") or hasattr(source, "__arrow_c_stream__")


def exported(source: Any, method: str) -> Any:
    """What a library hands out of its data by this method of the C data interface.

    Raises:
        IllegalArgumentError: the object has no such method, or its library cannot export it; its own words.
    """
    export = getattr(source, method, None)
    name = type(source).__name__
    if export is None:
        raise IllegalArgumentError(f"{name} does not speak the Arrow C data interface (no {method})")
    try:
        return export()
    except Exception as error:
        # Each library has errors of its own, some without a common base.
        raise IllegalArgumentError(f"{name} cannot be read as Arrow data: {error}") from error


@cython.cclass
class _Held:
    """Structs that a stream filled in for us; released when the last column lets go."""

    schema: cython.size_t
    array: cython.size_t

    def __init__(self) -> None:
        self.schema = new_schema()
        self.array = new_array()

    def __del__(self) -> None:
        if self.schema != 0:
            drop_schema(self.schema)
            self.schema = 0
        if self.array != 0:
            drop_array(self.array)
            self.array = 0


@cython.final
@cython.cclass
class ArrowBatch:
    """One record batch (or struct array) and its columns by name; or one array without names.

    Args:
        source: any object with ``__arrow_c_array__``.
        bare: whether to take an array that is no struct; then ``names`` is None, and any name means the array.

    Raises:
        IllegalArgumentError: no such object, not a struct, or rows that are null as a whole.
    """

    def __init__(self, source: Any, bare: bool = False) -> None:
        self.owner = exported(source, "__arrow_c_array__")
        self._open(
            capsule_address(self.owner[0], b"arrow_schema"), capsule_address(self.owner[1], b"arrow_array"), bare
        )

    def _open(self, schema: cython.size_t, array: cython.size_t, bare: cython.bint) -> None:
        if array_released(array):
            raise IllegalArgumentError("the Arrow data was released before")
        self.schema = schema
        self.array = array
        self.length = array_length(array)
        self.names: tuple[str, ...] | None = None
        if schema_format(schema) != b"+s":
            if not bare:
                from forebay._arrow.names import type_name

                raise IllegalArgumentError(
                    f"rows with named columns are needed (a record batch), got an array of {type_name(schema)}"
                )
            return
        count: cython.Py_ssize_t = schema_child_count(schema)
        self.names = tuple([schema_name(schema_child(schema, at)).decode(errors="replace") for at in range(count)])
        whole: cython.Py_ssize_t = first_null(array_buffer(array, 0), array_offset(array), self.length)
        if whole < self.length:
            raise IllegalArgumentError(f"row {whole} is null as a whole")

    def _column(self, kind: Any, name: str) -> Any:
        if self.names is None:
            return kind(name, self.schema, self.array, 0, self.owner)
        found = [at for at in range(len(self.names)) if self.names[at] == name]
        if len(found) != 1:
            raise IllegalArgumentError(
                f"column {name!r} " + ("is there twice" if found else f"is missing; columns: {', '.join(self.names)}")
            )
        at: cython.Py_ssize_t = found[0]
        # A struct's offset adds to those of its children, which may have rows after its last one.
        column: Column = kind(
            name, schema_child(self.schema, at), array_child(self.array, at), array_offset(self.array), self.owner
        )
        if column.length < self.length:
            raise IllegalArgumentError(f"column {name!r} has {column.length} rows, its batch has {self.length}")
        column.length = self.length
        return column

    def bytes_column(self, name: str) -> BytesColumn:
        return self._column(bytes_column, name)  # type: ignore[no-any-return]

    def int_column(self, name: str) -> IntColumn:
        return self._column(int_column, name)  # type: ignore[no-any-return]

    def timestamp_column(self, name: str) -> TimestampColumn:
        return self._column(timestamp_column, name)  # type: ignore[no-any-return]

    def headers_column(self, name: str) -> HeadersColumn:
        return self._column(headers_column, name)  # type: ignore[no-any-return]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def first_null(validity: cython.size_t, offset: cython.longlong, length: cython.Py_ssize_t) -> cython.Py_ssize_t:
    at: cython.Py_ssize_t
    for at in range(length if validity != 0 else 0):
        if not bit_at(validity, offset + at):
            return at
    return length


def batches(source: Any, bare: bool = False) -> Iterator[ArrowBatch]:
    """The batches of ``source``: a record batch, or a table or reader with ``__arrow_c_stream__``.

    A stream is read batch by batch, each when it is asked for.

    Args:
        bare: whether to take arrays without names.

    Raises:
        IllegalArgumentError: not Arrow data.
        OSError: the stream failed; its own message.
    """
    if hasattr(source, "__arrow_c_array__"):
        yield ArrowBatch(source, bare)
        return
    capsule = exported(source, "__arrow_c_stream__")
    while True:
        batch = _next_of(capsule, bare)
        if batch is None:
            return
        yield batch


def _next_of(capsule: object, bare: bool) -> ArrowBatch | None:
    stream: cython.size_t = capsule_address(capsule, b"arrow_array_stream")
    held: _Held = _Held()
    code: cython.int = stream_schema(stream, held.schema) or stream_next(stream, held.array)
    if code != 0:
        raise OSError(
            code, f"Arrow stream: {stream_error(stream).decode(errors='replace') or 'failed without a message'}"
        )
    if array_released(held.array):
        return None
    batch: ArrowBatch = ArrowBatch.__new__(ArrowBatch)
    batch.owner = held
    batch._open(held.schema, held.array, bare)
    return batch
