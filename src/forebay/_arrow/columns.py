"""Columns of bytes in any layout, read in place, and the base of all columns.

The producer of a column owns its memory.  A column holds what releases the memory, so it may outlive the object that it
was taken from.  An unknown layout is refused by name when the column is opened, never while rows are read.  Rows count
from 0, whatever an array's own offset is; ``advance`` drops the first rows.  One thread at a time may use a column,
because a search changes it.
"""

from __future__ import annotations

import cython
from cython.cimports.forebay._arrow.abi import (
    ALL_NULL,
    DICTIONARY,
    FIXED,
    OBJECTS,
    RUNS,
    STRIPPED,
    VARIABLE,
    VIEW,
    CellSource,
    array_buffer,
    array_buffers,
    array_child,
    array_dictionary,
    array_length,
    array_offset,
    bit_at,
    drop_cells,
    load_address,
    load_integer,
    new_cells,
    pointer_to,
    schema_child,
    schema_dictionary,
    schema_format,
    schema_metadata,
)
from cython.cimports.forebay._runtime.memory import drop_addresses, drop_numbers, new_addresses, new_numbers
from cython.cimports.forebay._runtime.primitives import bytes_pointer, no_bytes, utf8_pointer, utf8_size

from forebay.errors import IllegalArgumentError

INLINE_VIEW = cython.declare(cython.int, 12)
VIEW_SIZE = cython.declare(cython.int, 16)

BYTES_ALLOWED = (
    "binary, string, their large and view forms, fixed-size binary, a dictionary or run-end encoding of these"
)


def _bytes_layout(code: bytes) -> tuple[int, int] | None:
    """(layout, width of an offset or of a value) for a format string of the C data interface."""
    known = {
        b"n": (ALL_NULL, 0),
        b"z": (VARIABLE, 4),
        b"u": (VARIABLE, 4),
        b"Z": (VARIABLE, 8),
        b"U": (VARIABLE, 8),
        b"vz": (VIEW, VIEW_SIZE),
        b"vu": (VIEW, VIEW_SIZE),
    }
    if code.startswith(b"w:"):
        return FIXED, int(code[2:])
    return known.get(code)


def integer_width(code: bytes) -> int:
    """Bytes of an integer type, negative if unsigned; 0 if the format is no integer."""
    widths = {b"c": 1, b"s": 2, b"i": 4, b"l": 8, b"C": -1, b"S": -2, b"I": -4, b"L": 8}
    return widths.get(code, 0)


def bare_format(schema: int) -> bytes:
    """The format of what a dictionary or runs stand for, or of the type itself."""
    code: bytes = schema_format(schema)
    while schema_dictionary(schema) != 0 or code == b"+r":
        schema = schema_dictionary(schema) or schema_child(schema, 1)
        code = schema_format(schema)
    return code


def refused(name: str, schema: int, allowed: str) -> IllegalArgumentError:
    """The error for the Arrow type of the schema at this address, which a column of this use cannot have."""
    from forebay._arrow.names import type_name

    return IllegalArgumentError(f"column {name!r}: Arrow type {type_name(schema)} is not read here; allowed: {allowed}")


@cython.cclass
class Column:
    """The base of all columns; ``owner`` is the object that keeps the memory."""

    def __init__(self, name: str, length: cython.Py_ssize_t, owner: object) -> None:
        self.name = name
        self.owner = owner
        self.length = length
        self.validity = 0
        self.offset = 0

    def _open(self, schema: cython.size_t, array: cython.size_t, shift: cython.longlong) -> None:
        if schema_metadata(schema) != 0:
            from forebay._arrow.checks import check_extension

            check_extension(self.name, schema)
        self.offset = array_offset(array) + shift
        self.length = array_length(array) - shift
        code: bytes = schema_format(schema)
        # Run-end encoded columns and columns of the null type have no bitmap.
        self.validity = 0 if code == b"n" or code == b"+r" else array_buffer(array, 0)

    @cython.ccall
    @cython.exceptval(check=False)
    def is_null(self, row: cython.Py_ssize_t) -> cython.bint:
        return self.validity != 0 and not bit_at(self.validity, self.offset + row)

    @cython.ccall
    def advance(self, rows: cython.Py_ssize_t) -> cython.void:
        """Drops the first ``rows`` rows."""
        self.offset += rows
        self.length -= rows


@cython.cclass
class BytesColumn(Column):
    """Binary or UTF-8 in any layout."""

    def __init__(self, name: str, length: cython.Py_ssize_t, owner: object) -> None:
        Column.__init__(self, name, length, owner)
        self.source = new_cells()
        self.source.found = no_bytes()
        self.child: BytesColumn | None = None
        self.held: list[object] | None = None

    def __dealloc__(self) -> None:
        drop_cells(self.source)
        drop_addresses(self.addresses)
        drop_numbers(self.sizes)

    def open_arrow(self, schema: cython.size_t, array: cython.size_t, shift: cython.longlong) -> None:
        """Takes the layout of an Arrow array."""
        self._open(schema, array, shift)
        self.source.offset = self.offset
        self.source.validity = self.validity
        code: bytes = schema_format(schema)
        dictionary: cython.size_t = schema_dictionary(schema)
        if dictionary != 0:
            self.source.layout = DICTIONARY
            self.source.width = integer_width(code)
            self.source.data = array_buffer(array, 1)
            self._values_of(bytes_column(self.name, dictionary, array_dictionary(array), 0, self.owner))
            return
        if code == b"+r":
            self._open_runs(schema, array)
            return
        known: tuple[int, int] | None = _bytes_layout(code)
        if known is None:
            raise refused(self.name, schema, BYTES_ALLOWED)
        self.source.layout = known[0]
        self.source.width = known[1]
        if self.source.layout == VARIABLE:
            self.source.offsets = array_buffer(array, 1)
            self.source.data = array_buffer(array, 2)
        elif self.source.layout != ALL_NULL:
            self.source.data = array_buffer(array, 1)
            self.source.buffers = array_buffers(array)
            self.source.stride = known[1]

    def _open_runs(self, schema: cython.size_t, array: cython.size_t) -> None:
        ends: cython.size_t = array_child(array, 0)
        self.source.layout = RUNS
        self.source.width = integer_width(schema_format(schema_child(schema, 0)))
        self.source.data = array_buffer(ends, 1) + array_offset(ends) * self.source.width
        self.source.runs = array_length(ends)
        self._values_of(bytes_column(self.name, schema_child(schema, 1), array_child(array, 1), 0, self.owner))

    def _values_of(self, values: BytesColumn) -> None:
        self.child = values
        self.source.values = values.source

    def open_fixed(
        self, address: cython.size_t, stride: cython.longlong, width: cython.int, stripped: cython.bint
    ) -> None:
        """Takes values of ``width`` bytes, ``stride`` bytes apart; ``stripped`` drops the zeros at their ends."""
        self.source.layout = STRIPPED if stripped else FIXED
        self.source.data = address
        self.source.stride = stride
        self.source.width = width

    def open_objects(self, cells: list[object]) -> None:
        """Takes values that are ``bytes``, ``str`` (as UTF-8) or None; ``cells`` must be the caller's own list.

        Raises:
            TypeError: another type; names the row.
        """
        count: cython.Py_ssize_t = len(cells)
        self.held = cells
        self.addresses = new_addresses(count)
        self.sizes = new_numbers(count)
        at: cython.Py_ssize_t
        for at in range(count):
            cell: object = cells[at]
            if type(cell) is bytes:
                self.addresses[at] = bytes_pointer(cell)
                self.sizes[at] = len(cell)
            elif cell is None:
                self.addresses[at] = no_bytes()
                self.sizes[at] = -1
            else:
                cells[at] = cell = cell_of(self.name, at, cell)
                self.addresses[at] = utf8_pointer(cell) if type(cell) is str else bytes_pointer(cell)  # type: ignore[arg-type]
                self.sizes[at] = utf8_size(cell) if type(cell) is str else len(cell)
        self.source.layout = OBJECTS
        self.source.addresses = self.addresses
        self.source.sizes = self.sizes

    @cython.ccall
    def advance(self, rows: cython.Py_ssize_t) -> cython.void:
        self.offset += rows
        self.length -= rows
        self.source.offset += rows

    @cython.cfunc
    @cython.exceptval(check=False)
    def seek(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Bytes of the cell, -1 for null; ``found`` points at them until the next ``seek``."""
        return seek_cell(self.source, row)

    @cython.cfunc
    @cython.exceptval(check=False)
    def found(self) -> cython.p_const_uchar:
        return self.source.found

    @cython.ccall
    @cython.exceptval(check=False)
    def is_null(self, row: cython.Py_ssize_t) -> cython.bint:
        return seek_cell(self.source, row) < 0

    @cython.ccall
    def get(self, row: cython.Py_ssize_t) -> bytes | None:
        """The cell as bytes, None for null; for rare uses, such as a topic's name."""
        size: cython.Py_ssize_t = self.seek(row)
        if size < 0:
            return None
        if size == 0:
            return b""
        return self.source.found[:size]  # type: ignore[no-any-return]


def cell_of(name: str, row: int, cell: object) -> bytes | str:
    """What the column keeps of a value that is neither plain ``bytes`` nor None.

    Raises:
        TypeError: it is neither text nor bytes.
        IllegalArgumentError: text with a lone surrogate.
    """
    if isinstance(cell, str):
        text = str.__str__(cell)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise IllegalArgumentError(
                f"column {name!r}, row {row}: {text!r} cannot be encoded as UTF-8: {error.reason}"
            ) from None
        return text
    if isinstance(cell, (bytes, bytearray, memoryview)):
        return bytes(cell)
    raise TypeError(f"column {name!r}, row {row}: {type(cell).__name__} is not allowed; allowed: bytes, str, None")


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def seek_cell(source: cython.pointer(CellSource), row: cython.Py_ssize_t) -> cython.Py_ssize_t:  # type: ignore[valid-type]
    """Bytes of the cell, -1 for null; ``found`` points at them until the next call."""
    at: cython.longlong = source.offset + row
    layout: cython.int = source.layout
    size: cython.Py_ssize_t
    if layout == ALL_NULL or (source.validity != 0 and not bit_at(source.validity, at)):
        return -1
    if layout == VARIABLE:
        first: cython.longlong = load_integer(source.offsets, at, source.width)
        size = load_integer(source.offsets, at + 1, source.width) - first
        source.found = pointer_to(source.data + first, size)
        return size
    if layout == OBJECTS:
        source.found = source.addresses[at]
        return source.sizes[at]  # type: ignore[no-any-return]
    if layout in (FIXED, STRIPPED):
        return seek_fixed(source, at)
    if layout == VIEW:
        return seek_view(source, at)
    at = load_integer(source.data, at, source.width) if layout == DICTIONARY else run_of(source, at)
    size = seek_cell(source.values, at)
    source.found = source.values.found
    return size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def seek_fixed(source: cython.pointer(CellSource), at: cython.longlong) -> cython.Py_ssize_t:  # type: ignore[valid-type]
    address: cython.size_t = source.data + at * source.stride
    size: cython.Py_ssize_t = source.width
    if source.layout == STRIPPED:
        while size > 0 and load_integer(address, size - 1, 1) == 0:
            size -= 1
    source.found = pointer_to(address, size)
    return size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def seek_view(source: cython.pointer(CellSource), at: cython.longlong) -> cython.Py_ssize_t:  # type: ignore[valid-type]
    view: cython.size_t = source.data + at * VIEW_SIZE
    size: cython.Py_ssize_t = load_integer(view, 0, 4)
    if size <= INLINE_VIEW:
        source.found = pointer_to(view + 4, size)
    else:
        # Buffers 0 and 1 are validity and views; the data buffers follow.
        base: cython.size_t = load_address(source.buffers, 2 + load_integer(view, 2, 4))
        source.found = pointer_to(base + load_integer(view, 3, 4), size)
    return size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def run_of(source: cython.pointer(CellSource), at: cython.longlong) -> cython.longlong:  # type: ignore[valid-type]
    # The first run that ends behind ``at``.  Rows mostly come in order, so the last run and the next are tried first.
    run: cython.longlong = source.run
    low: cython.longlong = 0
    high: cython.longlong = source.runs - 1
    if run > 0 and load_integer(source.data, run - 1, source.width) > at:
        high = run - 1
    else:
        low = run
        if load_integer(source.data, run, source.width) > at:
            high = run
        elif run + 1 < source.runs and load_integer(source.data, run + 1, source.width) > at:
            low = high = run + 1
    while low < high:
        run = (low + high) // 2
        if load_integer(source.data, run, source.width) > at:
            high = run
        else:
            low = run + 1
    source.run = low
    return low


@cython.ccall
def bytes_column(
    name: str, schema: cython.size_t, array: cython.size_t, shift: cython.longlong, owner: object
) -> BytesColumn:
    """The column of an Arrow array, from row ``shift`` on."""
    column: BytesColumn = BytesColumn(name, 0, owner)
    column.open_arrow(schema, array, shift)
    return column
