"""Columns of integers and of timestamps, read in place; see ``columns``."""

from __future__ import annotations

from array import array as numbers_of
from typing import Any

import cython
from cython.cimports.forebay._arrow.abi import (
    array_buffer,
    array_child,
    array_dictionary,
    array_length,
    array_offset,
    bit_at,
    load_integer,
    schema_child,
    schema_dictionary,
    schema_format,
)

from forebay._arrow.columns import Column, bare_format, integer_width, refused
from forebay.errors import IllegalArgumentError

MOST_SECONDS = cython.declare(cython.longlong, 9223372036854775)
"""Most seconds before or after 1970 that fit into 64 bits as milliseconds."""
SHORTER = ", a dictionary or run-end encoding of these"
LOWEST_TIME = cython.declare(cython.longlong, -9223372036854775807)
"""A number below it is NumPy's NaT."""


@cython.cclass
class IntColumn(Column):
    """Any integer of up to 64 bits, ``stride`` bytes from one to the next (0: the same for all rows)."""

    def open(self, address: cython.size_t, stride: cython.longlong, code: bytes, validity: cython.size_t) -> None:
        """Takes numbers from ``address`` on, of this integer format; ``validity`` is Arrow's bitmap, or 0."""
        self.width = integer_width(code)
        self.unsigned = code == b"L"
        self.stride = stride
        self.data = address
        self.validity = validity

    @cython.ccall
    @cython.exceptval(check=False)
    def value(self, row: cython.Py_ssize_t) -> cython.longlong:
        """The cell; meaningless where ``is_null``.  An unsigned number of 64 bits wraps."""
        return load_integer(self.data + (self.offset + row) * self.stride, 0, self.width)

    @cython.ccall
    def exact(self, row: cython.Py_ssize_t) -> object:
        """The cell as a number of any size, for messages."""
        value: object = self.value(row)
        return value if not self.unsigned or value >= 0 else value + (1 << 64)  # type: ignore[operator]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def fill(
        self,
        row: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        absent: cython.longlong,
        most: cython.longlong,
        to: cython.pointer(cython.longlong),  # type: ignore[valid-type]
    ) -> cython.Py_ssize_t:
        """Copies cells from ``row`` on, ``absent`` for null; returns how many come before one outside 0 to ``most``."""
        number: cython.Py_ssize_t
        for number in range(count):
            at: cython.longlong = self.offset + row + number
            if self.validity != 0 and not bit_at(self.validity, at):
                to[number] = absent
                continue
            to[number] = load_integer(self.data + at * self.stride, 0, self.width)
            if to[number] < 0 or to[number] > most:
                return number
        return count


class _Spread:
    """The numbers of a dictionary or of runs with one for each row.  They are copied, as few columns are laid out so.

    Args:
        opener: of the column of their values.
    """

    def __init__(self, name: str, schema: int, array: int, shift: int, owner: object, opener: Any) -> None:
        self._owner = owner
        if schema_dictionary(schema) != 0:
            values = opener(name, schema_dictionary(schema), array_dictionary(array), 0, owner)
            places = _indices(name, schema, array, shift, owner)
        else:
            values = opener(name, schema_child(schema, 1), array_child(array, 1), 0, owner)
            places = _runs(name, schema, array, shift, owner)
        number = values.millis if isinstance(values, TimestampColumn) else values.value
        found = [None if place is None or values.is_null(place) else number(place) for place in places]
        self.cells = numbers_of("q", [0 if cell is None else cell for cell in found])
        self.bitmap = numbers_of("B", bytes(len(found) // 8 + 1))
        for row, cell in enumerate(found):
            if cell is not None:
                self.bitmap[row >> 3] |= 1 << (row & 7)

    def address(self) -> int:
        return self.cells.buffer_info()[0]

    def bitmap_address(self) -> int:
        return self.bitmap.buffer_info()[0]


def _indices(name: str, schema: int, array: int, shift: int, owner: object) -> list[int | None]:
    """The place of each row's value in the dictionary."""
    code = schema_format(schema)
    column: IntColumn = IntColumn(name, 0, owner)
    column._open(schema, array, shift)
    column.open(array_buffer(array, 1), abs(integer_width(code)), code, column.validity)
    return [None if column.is_null(row) else column.value(row) for row in range(column.length)]


def _runs(name: str, schema: int, array: int, shift: int, owner: object) -> list[int | None]:
    """The run of each row."""
    ends: IntColumn = int_column(name, schema_child(schema, 0), array_child(array, 0), 0, owner)
    first = array_offset(array) + shift
    places: list[int | None] = []
    run = 0
    for row in range(first, array_offset(array) + array_length(array)):
        while ends.value(run) <= row:
            run += 1
        places.append(run)
    return places


@cython.ccall
def int_column(
    name: str, schema: cython.size_t, array: cython.size_t, shift: cython.longlong, owner: object
) -> IntColumn:
    """The column of an Arrow array, from row ``shift`` on."""
    column: IntColumn = IntColumn(name, 0, owner)
    code: bytes = bare_format(schema)
    width: cython.longlong = integer_width(code)
    if width == 0:
        raise refused(name, schema, f"integers of any width{SHORTER}")
    if schema_format(schema) != code or schema_dictionary(schema) != 0:
        numbers: _Spread = _Spread(name, schema, array, shift, owner, int_column)
        column = IntColumn(name, len(numbers.cells), numbers)
        column.open(numbers.address(), 8, b"l", numbers.bitmap_address())
        return column
    column._open(schema, array, shift)
    column.open(array_buffer(array, 1), abs(width), code, column.validity)
    return column


@cython.cclass
class TimestampColumn(Column):
    """A timestamp of any unit, or 64-bit integers that are milliseconds already."""

    def open(
        self, address: cython.size_t, stride: cython.longlong, scale: tuple[int, int], validity: cython.size_t
    ) -> None:
        """Takes numbers from ``address`` on, to be multiplied by ``scale[0]`` and divided by ``scale[1]``."""
        self.data = address
        self.stride = stride
        self.factor = scale[0]
        self.divisor = scale[1]
        self.validity = validity
        self.has_nat = False

    def count_nat(self) -> None:
        """Takes the smallest number as null, as NumPy does."""
        self.has_nat = True

    @cython.ccall
    @cython.exceptval(check=False)
    def is_null(self, row: cython.Py_ssize_t) -> cython.bint:
        at: cython.longlong = self.offset + row
        if self.has_nat and load_integer(self.data + at * self.stride, 0, 8) < LOWEST_TIME:
            return True
        return self.validity != 0 and not bit_at(self.validity, at)

    @cython.ccall
    @cython.exceptval(-1, check=True)
    def millis(self, row: cython.Py_ssize_t) -> cython.longlong:
        """Milliseconds since 1970, rounded down; meaningless where ``is_null``."""
        value: cython.longlong = load_integer(self.data + (self.offset + row) * self.stride, 0, 8)
        if self.factor != 1:
            if value > MOST_SECONDS or value < -MOST_SECONDS:
                raise IllegalArgumentError(f"column {self.name!r}: {value} s do not fit into 64-bit milliseconds")
            return value * self.factor
        if value >= 0:
            return value // self.divisor
        # C rounds towards zero and Python rounds down.  They agree on numbers that are not negative.
        return -1 - (-1 - value) // self.divisor

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def fill(
        self,
        row: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        absent: cython.longlong,
        to: cython.pointer(cython.longlong),  # type: ignore[valid-type]
    ) -> cython.Py_ssize_t:
        """Copies milliseconds from ``row`` on, ``absent`` for null; returns how many come before one out of range."""
        number: cython.Py_ssize_t
        for number in range(count):
            at: cython.longlong = self.offset + row + number
            value: cython.longlong = load_integer(self.data + at * self.stride, 0, 8)
            if (self.has_nat and value < LOWEST_TIME) or (self.validity != 0 and not bit_at(self.validity, at)):
                to[number] = absent
            elif value < 0 or (self.factor != 1 and value > MOST_SECONDS):
                return number
            else:
                to[number] = value * self.factor if self.factor != 1 else value // self.divisor
        return count


@cython.ccall
def timestamp_column(
    name: str, schema: cython.size_t, array: cython.size_t, shift: cython.longlong, owner: object
) -> TimestampColumn:
    """The column of an Arrow array, from row ``shift`` on."""
    column: TimestampColumn = TimestampColumn(name, 0, owner)
    code: bytes = bare_format(schema)
    units = {b"tss": (1000, 1), b"tsm": (1, 1), b"tsu": (1, 1000), b"tsn": (1, 1_000_000)}
    scale = (1, 1) if code == b"l" else units.get(code[:3])
    if scale is None:
        raise refused(name, schema, f"timestamp of any unit, int64 in milliseconds{SHORTER}")
    if schema_format(schema) != code or schema_dictionary(schema) != 0:
        numbers: _Spread = _Spread(name, schema, array, shift, owner, timestamp_column)
        column = TimestampColumn(name, len(numbers.cells), numbers)
        column.open(numbers.address(), 8, (1, 1), numbers.bitmap_address())
        return column
    column._open(schema, array, shift)
    column.open(array_buffer(array, 1), 8, scale, column.validity)
    return column
