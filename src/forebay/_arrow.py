"""Arrow columns, read in place.

Anything that speaks Arrow's C data interface (pyarrow, polars, arro3, nanoarrow ...) is read through the
addresses it hands out: no cell becomes a Python object, and pyarrow is not needed.  The producer of the data
keeps ownership; a column holds what releases it, so a column outlives the object it was taken from.  Every
layout that is not read is refused by name when the column is opened, never while rows go through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cython

from forebay.errors import IllegalArgumentError

if cython.compiled:
    from cython.cimports.forebay._codec._arrow_abi import (
        array_buffer,
        array_buffers,
        array_child,
        array_dictionary,
        array_length,
        array_offset,
        array_released,
        bit_at,
        capsule_address,
        drop_array,
        drop_schema,
        load_address,
        load_integer,
        new_array,
        new_schema,
        pointer_to,
        schema_child,
        schema_child_count,
        schema_dictionary,
        schema_format,
        schema_name,
        stream_error,
        stream_next,
        stream_schema,
    )
    from cython.cimports.forebay._codec._prim import (
        bytearray_pointer,
        no_bytes,
        put_raw,
        put_varint,
        varint_size,
        zigzag,
    )
else:
    from forebay._codec._arrow_abi import (
        array_buffer,
        array_buffers,
        array_child,
        array_dictionary,
        array_length,
        array_offset,
        array_released,
        bit_at,
        capsule_address,
        drop_array,
        drop_schema,
        load_address,
        load_integer,
        new_array,
        new_schema,
        pointer_to,
        schema_child,
        schema_child_count,
        schema_dictionary,
        schema_format,
        schema_name,
        stream_error,
        stream_next,
        stream_schema,
    )
    from forebay._codec._prim import (
        bytearray_pointer,
        no_bytes,
        put_raw,
        put_varint,
        varint_size,
        zigzag,
    )

ALL_NULL = cython.declare(cython.int, 0)
VARIABLE = cython.declare(cython.int, 1)
FIXED = cython.declare(cython.int, 2)
VIEW = cython.declare(cython.int, 3)
DICTIONARY = cython.declare(cython.int, 4)

INLINE_VIEW = cython.declare(cython.int, 12)
VIEW_SIZE = cython.declare(cython.int, 16)

MOST_SECONDS = cython.declare(cython.longlong, 9223372036854775)
"""Seconds either side of 1970 that still fit into 64 bits as milliseconds."""


def _bytes_layout(code: bytes) -> tuple[int, int] | None:
    """(layout, width of an offset or of a value) for a format string of the C data interface."""
    known = {
        b"n": (0, 0),
        b"z": (1, 4),
        b"u": (1, 4),
        b"Z": (1, 8),
        b"U": (1, 8),
        b"vz": (3, 16),
        b"vu": (3, 16),
    }
    if code.startswith(b"w:"):
        return 2, int(code[2:])
    return known.get(code)


def _integer_width(code: bytes) -> int:
    """Bytes of an integer type, negative if unsigned; 0 if the format is no integer."""
    widths = {b"c": 1, b"s": 2, b"i": 4, b"l": 8, b"C": -1, b"S": -2, b"I": -4, b"L": 8}
    return widths.get(code, 0)


def _refused(name: str, code: bytes, allowed: str) -> IllegalArgumentError:
    return IllegalArgumentError(
        f"column {name!r}: Arrow type with format {code.decode()!r} is not read here; allowed: {allowed}"
    )


@cython.cclass
class Column:
    """One column of a batch; rows count from 0 whatever the array's own offset is."""

    def __init__(
        self, name: str, schema: cython.size_t, array: cython.size_t, shift: cython.longlong, owner: object
    ) -> None:
        self.name = name
        self.owner = owner
        self.offset = array_offset(array) + shift
        self.length = array_length(array) - shift
        self.validity = 0 if schema_format(schema) == b"n" else array_buffer(array, 0)

    @cython.ccall
    @cython.exceptval(check=False)
    def is_null(self, row: cython.Py_ssize_t) -> cython.bint:
        return self.validity != 0 and not bit_at(self.validity, self.offset + row)


@cython.cclass
class BytesColumn(Column):
    """Binary or UTF-8 in any layout; ``seek`` leaves the cell's address in ``found``."""

    def __init__(
        self, name: str, schema: cython.size_t, array: cython.size_t, shift: cython.longlong, owner: object
    ) -> None:
        Column.__init__(self, name, schema, array, shift, owner)
        dictionary: cython.size_t = schema_dictionary(schema)
        code: bytes = schema_format(schema)
        self.found = no_bytes()
        self.offsets = 0
        self.data = 0
        self.buffers = 0
        self.values = None
        if dictionary != 0:
            self.layout = DICTIONARY
            self.width = _integer_width(code)
            self.data = array_buffer(array, 1)
            self.values = BytesColumn(name, dictionary, array_dictionary(array), 0, owner)
            return
        known: tuple[int, int] | None = _bytes_layout(code)
        if known is None:
            raise _refused(
                name, code, "binary, string, their large and view forms, fixed-size binary, a dictionary of these"
            )
        self.layout = known[0]
        self.width = known[1]
        if self.layout == VARIABLE:
            self.offsets = array_buffer(array, 1)
            self.data = array_buffer(array, 2)
        elif self.layout != ALL_NULL:
            self.data = array_buffer(array, 1)
            self.buffers = array_buffers(array)

    @cython.cfunc
    @cython.exceptval(check=False)
    def seek(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Bytes of the cell, -1 for null; ``found`` points at them until the next ``seek``."""
        at: cython.longlong = self.offset + row
        if self.layout == ALL_NULL or (self.validity != 0 and not bit_at(self.validity, at)):
            return -1
        size: cython.Py_ssize_t
        if self.layout == VARIABLE:
            first: cython.longlong = load_integer(self.offsets, at, self.width)
            size = load_integer(self.offsets, at + 1, self.width) - first
            self.found = pointer_to(self.data + first, size)
            return size
        if self.layout == FIXED:
            self.found = pointer_to(self.data + at * self.width, self.width)
            return self.width
        if self.layout == DICTIONARY:
            values: BytesColumn = cython.cast(BytesColumn, self.values)
            size = values.seek(load_integer(self.data, at, self.width))
            self.found = values.found
            return size
        view: cython.size_t = self.data + at * VIEW_SIZE
        size = load_integer(view, 0, 4)
        if size <= INLINE_VIEW:
            self.found = pointer_to(view + 4, size)
        else:
            # Buffers 0 and 1 are validity and views; the data buffers follow.
            base: cython.size_t = load_address(self.buffers, 2 + load_integer(view, 2, 4))
            self.found = pointer_to(base + load_integer(view, 3, 4), size)
        return size

    @cython.ccall
    def get(self, row: cython.Py_ssize_t) -> bytes | None:
        """The cell as bytes, None for null; for rare looks, such as at a topic's name."""
        size: cython.Py_ssize_t = self.seek(row)
        if size < 0:
            return None
        if size == 0:
            return b""
        return self.found[:size]  # type: ignore[no-any-return]


@cython.cclass
class IntColumn(Column):
    """Any integer of up to 64 bits."""

    def __init__(
        self, name: str, schema: cython.size_t, array: cython.size_t, shift: cython.longlong, owner: object
    ) -> None:
        Column.__init__(self, name, schema, array, shift, owner)
        code: bytes = schema_format(schema)
        self.width = 0 if schema_dictionary(schema) != 0 else _integer_width(code)
        if self.width == 0 or code == b"L":
            raise _refused(name, code, "signed integers, unsigned ones of up to 32 bits")
        self.data = array_buffer(array, 1)

    @cython.ccall
    @cython.exceptval(check=False)
    def value(self, row: cython.Py_ssize_t) -> cython.longlong:
        """The cell; meaningless where ``is_null``."""
        return load_integer(self.data, self.offset + row, self.width)


@cython.cclass
class TimestampColumn(Column):
    """A timestamp of any unit, or 64-bit integers that are milliseconds already."""

    def __init__(
        self, name: str, schema: cython.size_t, array: cython.size_t, shift: cython.longlong, owner: object
    ) -> None:
        Column.__init__(self, name, schema, array, shift, owner)
        code: bytes = schema_format(schema)
        units = {b"tss": (1000, 1), b"tsm": (1, 1), b"tsu": (1, 1000), b"tsn": (1, 1_000_000)}
        scale = (1, 1) if code == b"l" else units.get(code[:3])
        if scale is None or schema_dictionary(schema) != 0:
            raise _refused(name, code, "timestamp of any unit, int64 in milliseconds")
        self.factor = scale[0]
        self.divisor = scale[1]
        self.data = array_buffer(array, 1)

    @cython.ccall
    @cython.exceptval(-1, check=True)
    def millis(self, row: cython.Py_ssize_t) -> cython.longlong:
        """Milliseconds since 1970, rounded down; meaningless where ``is_null``."""
        value: cython.longlong = load_integer(self.data, self.offset + row, 8)
        if self.factor != 1:
            if value > MOST_SECONDS or value < -MOST_SECONDS:
                raise IllegalArgumentError(
                    f"column {self.name!r}, row {row}: {value} s do not fit into 64-bit milliseconds"
                )
            return value * self.factor
        if value >= 0:
            return value // self.divisor
        # C rounds to zero and Python down: both agree on what is not negative.
        return -1 - (-1 - value) // self.divisor


@cython.cclass
class HeadersColumn(Column):
    """``list<struct<key: string, value: binary>>``, encoded as a record's header section into one scratch buffer."""

    def __init__(
        self, name: str, schema: cython.size_t, array: cython.size_t, shift: cython.longlong, owner: object
    ) -> None:
        Column.__init__(self, name, schema, array, shift, owner)
        code: bytes = schema_format(schema)
        entry: cython.size_t = schema_child(schema, 0) if code == b"+l" or code == b"+L" else 0
        if entry == 0 or schema_format(entry) != b"+s" or schema_child_count(entry) != 2:
            raise _refused(name, code, "list<struct<key: string, value: binary>>")
        if schema_name(schema_child(entry, 0)) != b"key" or schema_name(schema_child(entry, 1)) != b"value":
            raise _refused(name, code, "list<struct<key: string, value: binary>>, the fields named key and value")
        entries: cython.size_t = array_child(array, 0)
        self.width = 4 if code == b"+l" else 8
        self.offsets = array_buffer(array, 1)
        self.entry_offset = array_offset(entries)
        self.entry_validity = array_buffer(entries, 0)
        self.keys = BytesColumn(
            f"{name}.key", schema_child(entry, 0), array_child(entries, 0), self.entry_offset, owner
        )
        self.values = BytesColumn(
            f"{name}.value", schema_child(entry, 1), array_child(entries, 1), self.entry_offset, owner
        )
        self.scratch = bytearray(256)
        self.encoded = bytearray_pointer(self.scratch)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def encode(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Writes the row's header section to ``encoded`` and returns its size; null is no headers.

        Raises:
            IllegalArgumentError: a null header, or one without a key; names column and row.
        """
        first: cython.longlong = 0
        last: cython.longlong = 0
        if not self.is_null(row) and self.length > 0:
            first = load_integer(self.offsets, self.offset + row, self.width)
            last = load_integer(self.offsets, self.offset + row + 1, self.width)
        self.measure(row, first, last)
        at: cython.Py_ssize_t = put_varint(self.encoded, 0, zigzag(last - first))
        entry: cython.longlong
        for entry in range(first, last):
            size: cython.Py_ssize_t = self.keys.seek(entry)
            at = put_varint(self.encoded, at, zigzag(size))
            at = put_raw(self.encoded, at, self.keys.found, size)
            size = self.values.seek(entry)
            at = put_varint(self.encoded, at, zigzag(size))
            if size > 0:
                at = put_raw(self.encoded, at, self.values.found, size)
        return at

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def measure(self, row: cython.Py_ssize_t, first: cython.longlong, last: cython.longlong) -> cython.Py_ssize_t:
        """Checks the entries and makes room for them; a new scratch, for the old one's address may be in use."""
        size: cython.Py_ssize_t = varint_size(zigzag(last - first))
        entry: cython.longlong
        for entry in range(first, last):
            if self.entry_validity != 0 and not bit_at(self.entry_validity, self.entry_offset + entry):
                raise IllegalArgumentError(f"column {self.name!r}, row {row}: header {entry - first} is null")
            key_size: cython.Py_ssize_t = self.keys.seek(entry)
            if key_size < 0:
                raise IllegalArgumentError(f"column {self.name!r}, row {row}: header {entry - first} has a null key")
            value_size: cython.Py_ssize_t = self.values.seek(entry)
            size += varint_size(zigzag(key_size)) + key_size + varint_size(zigzag(value_size))
            if value_size > 0:
                size += value_size
        if size > len(self.scratch):
            self.scratch = bytearray(2 * size)
            self.encoded = bytearray_pointer(self.scratch)
        return size

    @cython.ccall
    def section(self, row: cython.Py_ssize_t) -> bytes:
        """The row's encoded header section as bytes of its own."""
        size: cython.Py_ssize_t = self.encode(row)
        return bytes(self.scratch[:size])


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


@cython.cclass
class ArrowBatch:
    """One record batch (or struct array) and its columns by name.

    Args:
        source: any object with ``__arrow_c_array__``.

    Raises:
        IllegalArgumentError: no such object, not a struct, or rows that are null as a whole.
    """

    def __init__(self, source: Any) -> None:
        export = getattr(source, "__arrow_c_array__", None)
        if export is None:
            raise IllegalArgumentError(
                f"{type(source).__name__} does not speak the Arrow C data interface (__arrow_c_array__)"
            )
        self.owner = export()
        self._open(capsule_address(self.owner[0], b"arrow_schema"), capsule_address(self.owner[1], b"arrow_array"))

    def _open(self, schema: cython.size_t, array: cython.size_t) -> None:
        if schema_format(schema) != b"+s":
            code = schema_format(schema).decode()
            raise IllegalArgumentError(
                f"rows with named columns are needed (a record batch), got Arrow format {code!r}"
            )
        if array_released(array):
            raise IllegalArgumentError("the Arrow data was released before")
        self.schema = schema
        self.array = array
        self.length = array_length(array)
        count: cython.Py_ssize_t = schema_child_count(schema)
        at: cython.Py_ssize_t
        self.names = tuple([schema_name(schema_child(schema, at)).decode() for at in range(count)])
        validity: cython.size_t = array_buffer(array, 0)
        for at in range(self.length if validity != 0 else 0):
            if not bit_at(validity, array_offset(array) + at):
                raise IllegalArgumentError(f"row {at} is null as a whole")

    def _column(self, kind: Any, name: str) -> Any:
        found = [at for at in range(len(self.names)) if self.names[at] == name]
        if len(found) != 1:
            raise IllegalArgumentError(
                f"column {name!r} " + ("is there twice" if found else f"is missing; columns: {', '.join(self.names)}")
            )
        at: cython.Py_ssize_t = found[0]
        return kind(
            name, schema_child(self.schema, at), array_child(self.array, at), array_offset(self.array), self.owner
        )

    def bytes_column(self, name: str) -> BytesColumn:
        return self._column(BytesColumn, name)  # type: ignore[no-any-return]

    def int_column(self, name: str) -> IntColumn:
        return self._column(IntColumn, name)  # type: ignore[no-any-return]

    def timestamp_column(self, name: str) -> TimestampColumn:
        return self._column(TimestampColumn, name)  # type: ignore[no-any-return]

    def headers_column(self, name: str) -> HeadersColumn:
        return self._column(HeadersColumn, name)  # type: ignore[no-any-return]


def batches(source: Any) -> Iterator[ArrowBatch]:
    """The batches of ``source``: a record batch, or a table or reader with ``__arrow_c_stream__``.

    Raises:
        IllegalArgumentError: not Arrow data.
        OSError: the stream failed; its own message.
    """
    if hasattr(source, "__arrow_c_array__"):
        yield ArrowBatch(source)
        return
    export = getattr(source, "__arrow_c_stream__", None)
    if export is None:
        raise IllegalArgumentError(
            f"{type(source).__name__} does not speak the Arrow C data interface (no __arrow_c_stream__)"
        )
    capsule = export()
    while True:
        batch = _next_of(capsule)
        if batch is None:
            return
        yield batch


def _next_of(capsule: object) -> ArrowBatch | None:
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
    batch._open(held.schema, held.array)
    return batch
