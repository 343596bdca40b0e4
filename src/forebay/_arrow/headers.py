"""Columns of headers in record format v2.  They are measured, then written, both without the GIL."""

from __future__ import annotations

from array import array as counted

import cython
from cython.cimports.forebay._arrow.abi import (
    array_buffer,
    array_child,
    array_offset,
    bit_at,
    load_integer,
    schema_child,
    schema_child_count,
    schema_format,
    schema_name,
)
from cython.cimports.forebay._arrow.columns import bytes_column, seek_cell
from cython.cimports.forebay._runtime.primitives import bytearray_pointer, put_raw, put_varint, varint_size, zigzag

from forebay._arrow.columns import BytesColumn, Column, bare_format, refused
from forebay.errors import IllegalArgumentError

TEXT = (b"u", b"U", b"vu")
LISTS = (b"+l", b"+L", b"+vl", b"+vL", b"+m")
ALLOWED = "list<struct<key: string, value: binary>>, its large, fixed-size and view forms, map<string, binary>"
KEYS_ALLOWED = "string, large_string, string_view, a dictionary or run-end encoding of these"

# Results of ``size_of`` for a row that Kafka cannot encode.
NULL_HEADER = cython.declare(cython.Py_ssize_t, -1)
NULL_KEY = cython.declare(cython.Py_ssize_t, -2)


@cython.final
@cython.cclass
class HeadersColumn(Column):
    """Lists of (key, value), or sections that are encoded already (``sections``).  A null list means no headers."""

    def open_arrow(self, schema: cython.size_t, array: cython.size_t, shift: cython.longlong) -> None:
        """Takes the layout of an Arrow array.

        Raises:
            IllegalArgumentError: it is no list of headers.
        """
        self._open(schema, array, shift)
        code: bytes = schema_format(schema)
        listed: cython.bint = code in LISTS or code.startswith(b"+w:")
        entry: cython.size_t = schema_child(schema, 0) if listed else 0
        if entry == 0 or schema_format(entry) != b"+s" or schema_child_count(entry) != 2:
            raise refused(self.name, schema, ALLOWED)
        # Arrow fixes the order of a map's two fields, but not their names.
        if code != b"+m" and (
            schema_name(schema_child(entry, 0)) != b"key" or schema_name(schema_child(entry, 1)) != b"value"
        ):
            raise refused(self.name, schema, f"{ALLOWED}, the fields named key and value")
        if bare_format(schema_child(entry, 0)) not in TEXT:
            # Every reader takes a key as text.  Other bytes would fail in a split, or in a consumer.
            raise refused(f"{self.name}.key", schema_child(entry, 0), KEYS_ALLOWED)
        entries: cython.size_t = array_child(array, 0)
        self._open_lists(code, array)
        self.entry_offset = array_offset(entries)
        self.entry_validity = array_buffer(entries, 0)
        self.keys = bytes_column(
            f"{self.name}.key", schema_child(entry, 0), array_child(entries, 0), self.entry_offset, self.owner
        )
        self.values = bytes_column(
            f"{self.name}.value", schema_child(entry, 1), array_child(entries, 1), self.entry_offset, self.owner
        )
        self.key_source = self.keys.source
        self.value_source = self.values.source
        self.sections: BytesColumn | None = None

    def _open_lists(self, code: bytes, array: cython.size_t) -> None:
        """Takes where the entries of each row begin and end."""
        if code.startswith(b"+w:"):
            size: cython.longlong = int(code[3:])
            self.counted = counted("q", [at * size for at in range(self.offset + self.length + 1)])
            self.width = 8
            self.offsets = self.counted.buffer_info()[0]
        else:
            self.width = 8 if code in (b"+L", b"+vL") else 4
            self.offsets = array_buffer(array, 1)
        # Views have sizes; of lists the next one's begin is the end.
        self.relative = code in (b"+vl", b"+vL")
        self.ends = array_buffer(array, 2) if self.relative else self.offsets + self.width

    def open_sections(self, sections: BytesColumn) -> None:
        """Takes the results of ``encode_headers``, one for each row."""
        self.sections = sections
        self.section_source = sections.source
        self.length = sections.length
        self.width = 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def find(self, row: cython.Py_ssize_t) -> cython.void:
        # Sets ``first`` and ``last`` to the row's entries.
        self.first = self.last = 0
        at: cython.longlong = self.offset + row
        if self.length > 0 and (self.validity == 0 or bit_at(self.validity, at)):
            self.first = load_integer(self.offsets, at, self.width)
            self.last = load_integer(self.ends, at, self.width)
            if self.relative:
                self.last = self.first + self.last

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def size_of(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Bytes of the row's section; below 0 if an entry cannot be encoded, and then ``first`` is that entry."""
        if self.width == 0:
            return seek_cell(self.section_source, self.offset + row)
        self.find(row)
        size: cython.Py_ssize_t = varint_size(zigzag(self.last - self.first))
        entry: cython.longlong
        for entry in range(self.first, self.last):
            if self.entry_validity != 0 and not bit_at(self.entry_validity, self.entry_offset + entry):
                self.last = entry
                return NULL_HEADER
            key_size: cython.Py_ssize_t = seek_cell(self.key_source, entry)
            if key_size < 0:
                self.last = entry
                return NULL_KEY
            value_size: cython.Py_ssize_t = seek_cell(self.value_source, entry)
            size += varint_size(zigzag(key_size)) + key_size + varint_size(zigzag(value_size))
            if value_size > 0:
                size += value_size
        return size

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def write(self, row: cython.Py_ssize_t, to: cython.p_uchar, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Writes the row's section to ``to`` at ``at`` and returns its end; ``size_of`` says how much room it needs."""
        size: cython.Py_ssize_t
        if self.width == 0:
            size = seek_cell(self.section_source, self.offset + row)
            return put_raw(to, at, self.section_source.found, size)
        self.find(row)
        at = put_varint(to, at, zigzag(self.last - self.first))
        entry: cython.longlong
        for entry in range(self.first, self.last):
            size = seek_cell(self.key_source, entry)
            at = put_varint(to, at, zigzag(size))
            at = put_raw(to, at, self.key_source.found, size)
            size = seek_cell(self.value_source, entry)
            at = put_varint(to, at, zigzag(size))
            if size > 0:
                at = put_raw(to, at, self.value_source.found, size)
        return at

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def measure(
        self,
        row: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        most: cython.Py_ssize_t,
        sizes: cython.pointer(cython.longlong),  # type: ignore[valid-type]
    ) -> cython.Py_ssize_t:
        """Measures rows from ``row`` on; returns how many come before one that cannot be encoded or passes ``most``."""
        number: cython.Py_ssize_t
        for number in range(count):
            size: cython.Py_ssize_t = self.size_of(row + number)
            most -= size
            if size < 0 or most < 0:
                return number
            sizes[number] = size
        return count

    @cython.ccall
    def section(self, row: cython.Py_ssize_t) -> bytes:
        """The row's encoded header section.

        Raises:
            IllegalArgumentError: a null header, or one without a key; names the column; the row's number is
                the caller's to tell.
        """
        size: cython.Py_ssize_t = self.size_of(row)
        if size < 0:
            entry: cython.longlong = self.last - self.first
            what = f"header {entry} is null" if size == NULL_HEADER else f"header {entry} has a null key"
            raise IllegalArgumentError(f"column {self.name!r}: {what}")
        encoded: bytearray = bytearray(size)
        self.write(row, bytearray_pointer(encoded), 0)
        return bytes(encoded)


@cython.ccall
def headers_column(
    name: str, schema: cython.size_t, array: cython.size_t, shift: cython.longlong, owner: object
) -> HeadersColumn:
    """The column of an Arrow array, from row ``shift`` on."""
    column: HeadersColumn = HeadersColumn(name, 0, owner)
    column.open_arrow(schema, array, shift)
    return column
