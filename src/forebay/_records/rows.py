"""RowWindow: a window of rows for the encoder: addresses, sizes and numbers in plain arrays.

Columns come in many layouts, and a window has one.  So hashing, grouping by partition and encoding are loops over
arrays that need neither Python objects nor the GIL.  A window owns its arrays, but not the bytes: the columns that
filled it must outlive it.  One thread at a time may use it.
"""

from __future__ import annotations

import cython
from cython.cimports.forebay._arrow.abi import VARIABLE, CellSource, bit_at, load_integer, pointer_to
from cython.cimports.forebay._arrow.columns import seek_cell
from cython.cimports.forebay._runtime.memory import drop_addresses, drop_numbers, new_addresses, new_numbers
from cython.cimports.forebay._runtime.primitives import (
    MAX_INT32,
    bytearray_pointer,
    bytearray_pointer_at,
    crc32c,
    murmur2,
    put_int8,
    put_raw,
    put_varint,
    varint_size,
    zigzag,
)

from forebay._arrow.columns import BytesColumn
from forebay._arrow.headers import HeadersColumn

NULL = cython.declare(cython.longlong, -1)
NO_SIZE = cython.declare(cython.longlong, -2)
"""A number that is not the size of any cell."""
NO_KEY = cython.declare(cython.longlong, 1)
"""A key's size in a record without one: -1 as a varint."""
CHECKED_ROWS = cython.declare(cython.Py_ssize_t, 64)
"""So many rows are written before the checksum reads them."""


@cython.final
@cython.cclass
class Cells:
    """Address and size (-1 for null) of one column's cells in the window."""

    def __init__(self, capacity: cython.Py_ssize_t) -> None:
        self.addresses = new_addresses(capacity)
        self.sizes = new_numbers(capacity)
        self.alike = 0

    def __dealloc__(self) -> None:
        drop_addresses(self.addresses)
        drop_numbers(self.sizes)

    @cython.cfunc
    def fill(self, column: BytesColumn, row: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.void:
        """The column's cells from ``row`` on."""
        source: cython.pointer(CellSource) = column.source  # type: ignore[valid-type]
        self.alike = 0
        # With the GIL, because this takes microseconds, and getting the GIL back from another thread may take longer.
        if source.layout == VARIABLE:
            fill_variable(self, source, source.offset + row, count)
        else:
            fill_cells(self, source, row, count)

    @cython.cfunc
    @cython.exceptval(check=False)
    def fill_with(self, count: cython.Py_ssize_t, address: cython.p_const_uchar, size: cython.longlong) -> cython.void:
        """The same cell for every row, for a missing column.  Until ``fill`` is called, each call has the same cell."""
        at: cython.Py_ssize_t
        for at in range(self.alike, count):
            self.addresses[at] = address
            self.sizes[at] = size
        self.alike = max(self.alike, count)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def fill_variable(
    cells: Cells,
    source: cython.pointer(CellSource),  # type: ignore[valid-type]
    first: cython.longlong,
    count: cython.Py_ssize_t,
) -> cython.void:
    # Each offset is read once: the end of one cell is the beginning of the next.
    at: cython.Py_ssize_t
    width: cython.int = source.width
    begin: cython.longlong = load_integer(source.offsets, first, width)
    for at in range(count):
        end: cython.longlong = load_integer(source.offsets, first + at + 1, width)
        cells.addresses[at] = pointer_to(source.data + begin, end - begin)
        cells.sizes[at] = end - begin
        begin = end
    if source.validity != 0:
        for at in range(count):
            if not bit_at(source.validity, first + at):
                cells.sizes[at] = NULL


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def fill_cells(
    cells: Cells,
    source: cython.pointer(CellSource),  # type: ignore[valid-type]
    row: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
) -> cython.void:
    at: cython.Py_ssize_t
    for at in range(count):
        cells.sizes[at] = seek_cell(source, row + at)
        cells.addresses[at] = source.found


@cython.final
@cython.cclass
class RowWindow:
    """Up to ``capacity`` rows.

    ``topics`` says which topic a row belongs to if there are several; ``limits`` has the partitions of each topic.
    ``order`` is the order of writing: a permutation of them once ``keep_order`` or ``sort_by_topic`` ran.
    ``values_only`` says that no row has a key or headers, and that all have the timestamp of the first.
    """

    def __init__(self, capacity: cython.Py_ssize_t) -> None:
        self.capacity = capacity
        self.keys = Cells(capacity)
        self.values = Cells(capacity)
        self.headers = Cells(capacity)
        self.key_cells = self.keys.addresses
        self.key_sizes = self.keys.sizes
        self.value_cells = self.values.addresses
        self.value_sizes = self.values.sizes
        self.header_cells = self.headers.addresses
        self.header_sizes = self.headers.sizes
        self.timestamps = new_numbers(capacity)
        self.partitions = new_numbers(capacity)
        self.topics = new_numbers(capacity)
        self.limits = new_numbers(capacity)
        self.order = new_numbers(capacity)
        self.sorted = new_numbers(capacity)
        self.ends = new_numbers(1)
        self.ends_size = 1
        self.sections = bytearray(0)
        self.ordered = self.values_only = False
        self.position = self.largest = self.raw_size = self.limit = 0
        self.ratio = self.margin = 1.0
        self.latest = self.checked = self.checksum = 0
        self.taker: object = None
        self.first_index = 0
        self.filled = False
        self.written = 0
        self.taken = 0

    def __dealloc__(self) -> None:
        drop_numbers(self.timestamps)
        drop_numbers(self.partitions)
        drop_numbers(self.topics)
        drop_numbers(self.limits)
        drop_numbers(self.order)
        drop_numbers(self.sorted)
        drop_numbers(self.ends)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def partition_by_key(self, count: cython.Py_ssize_t) -> cython.void:
        """Chooses partitions as Java does, by murmur2 of the key, for rows that have a key and no partition (-1)."""
        at: cython.Py_ssize_t
        for at in range(count):
            if self.partitions[at] < 0 and self.key_sizes[at] >= 0:
                self.partitions[at] = (murmur2(self.key_cells[at], self.key_sizes[at]) & MAX_INT32) % self.limits[at]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def keep_order(self, count: cython.Py_ssize_t) -> cython.void:
        """Keeps the rows in their order: all of them go to the same partition, or may go to any."""
        at: cython.Py_ssize_t
        for at in range(count):
            self.order[at] = at
        self.ordered = True

    @cython.cfunc
    def make_ends(self, groups: cython.Py_ssize_t) -> cython.void:
        """Makes room for the ends of ``groups`` groups."""
        if self.ends_size < groups:
            # The new array comes first: without memory for it, the old one must stay, because the destructor drops it.
            ends = new_numbers(groups)
            drop_numbers(self.ends)
            self.ends = ends
            self.ends_size = groups

    @cython.cfunc
    def sort_by_topic(self, count: cython.Py_ssize_t, topics: cython.Py_ssize_t) -> cython.void:
        """Orders the rows by topic, and keeps their order within a topic; ``ends[t]`` is the end of topic t."""
        self.make_ends(topics)
        with cython.nogil:
            self.keep_order(count)
            self.sort(self.topics, 0, 0, count, topics)

    @cython.cfunc
    def sort_by_partition(
        self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t, partition_count: cython.Py_ssize_t
    ) -> cython.void:
        """Orders rows ``order[begin:end]`` by partition, -1 first; ``ends[p + 1]`` is the end of partition p."""
        self.make_ends(partition_count + 1)
        with cython.nogil:
            self.sort(self.partitions, 1, begin, end, partition_count + 1)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def sort(
        self,
        numbers: cython.pointer(cython.longlong),  # type: ignore[valid-type]
        shift: cython.longlong,
        begin: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        groups: cython.Py_ssize_t,
    ) -> cython.void:
        # Counting sort: ``ends`` has the begins of the groups at first, and their ends after the last step.
        at: cython.Py_ssize_t
        row: cython.longlong
        number: cython.longlong
        total: cython.longlong = begin
        self.ordered = False
        for at in range(groups):
            self.ends[at] = 0
        for at in range(begin, end):
            self.ends[numbers[self.order[at]] + shift] += 1
        for at in range(groups):
            number = self.ends[at]
            self.ends[at] = total
            total += number
        for at in range(begin, end):
            row = self.order[at]
            number = numbers[row] + shift
            self.sorted[self.ends[number]] = row
            self.ends[number] += 1
        for at in range(begin, end):
            self.order[at] = self.sorted[at]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def fill_headers(
        self, column: HeadersColumn, row: cython.Py_ssize_t, count: cython.Py_ssize_t, most: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Encodes the headers of rows from ``row`` on, ``most`` bytes in all.

        Returns:
            How many rows it encoded: fewer than ``count`` if one cannot be encoded or has no room.
        """
        sizes = self.header_sizes
        with cython.nogil:
            count = column.measure(row, count, most, sizes)
        total: cython.Py_ssize_t = 0
        at: cython.Py_ssize_t
        for at in range(count):
            total += self.header_sizes[at]
        if len(self.sections) < total:
            self.sections = bytearray(max(total, 2 * len(self.sections)))
        to: cython.p_uchar = bytearray_pointer(self.sections)
        with cython.nogil:
            self.write_headers(column, row, count, to)
        total = 0
        for at in range(count):
            self.header_cells[at] = bytearray_pointer_at(self.sections, total)
            total += self.header_sizes[at]
        return count

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def write_headers(
        self, column: HeadersColumn, row: cython.Py_ssize_t, count: cython.Py_ssize_t, to: cython.p_uchar
    ) -> cython.void:
        at: cython.Py_ssize_t
        position: cython.Py_ssize_t = 0
        for at in range(count):
            position = column.write(row + at, to, position)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def write_checked(
        self,
        at: cython.Py_ssize_t,
        until: cython.Py_ssize_t,
        to: cython.p_uchar,
        capacity: cython.Py_ssize_t,
        base_timestamp: cython.longlong,
        first_offset: cython.longlong,
    ) -> cython.Py_ssize_t:
        """Like ``write``, and extends ``checksum``, which covers the first ``checked`` bytes, to ``position``.

        It takes a few rows at a time, so it reads them again while the processor's first cache has them.
        """
        while at < until:
            end: cython.Py_ssize_t = min(at + CHECKED_ROWS, until)
            stopped: cython.Py_ssize_t = self.write(at, end, to, capacity, base_timestamp, first_offset)
            first_offset += stopped - at
            at = stopped
            self.checksum = crc32c(self.checksum, to, self.checked, self.position - self.checked)
            self.checked = self.position
            if stopped < end:
                break
        return at

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def write(
        self,
        at: cython.Py_ssize_t,
        until: cython.Py_ssize_t,
        to: cython.p_uchar,
        capacity: cython.Py_ssize_t,
        base_timestamp: cython.longlong,
        first_offset: cython.longlong,
    ) -> cython.Py_ssize_t:
        """Encodes rows ``order[at:until]`` to ``to`` from ``position`` on, as long as they fit.

        A row fits if it ends below ``capacity``, and if ``raw_size`` by the expected ratio, together with the row
        uncompressed, is at most ``limit``.  Sets ``position``, ``raw_size``, the ``largest`` record's size and the
        ``latest`` timestamp.

        Returns:
            The place in ``order`` at which it stopped.
        """
        if self.ordered and self.values_only and self.ratio * self.margin == 1.0:
            # Without compression the written bytes are the raw bytes, so one bound is enough.
            capacity = min(capacity, self.position + self.limit - self.raw_size)
            return self.write_values(at, until, to, capacity, self.timestamps[0] - base_timestamp, first_offset)
        while at < until:
            row: cython.longlong = self.order[at]
            key_size: cython.longlong = self.key_sizes[row]
            value_size: cython.longlong = self.value_sizes[row]
            delta: cython.longlong = self.timestamps[row] - base_timestamp
            body: cython.longlong = 1 + cell_size(key_size) + cell_size(value_size) + self.header_sizes[row]
            body += varint_size(zigzag(delta)) + varint_size(zigzag(first_offset))
            size: cython.longlong = body + varint_size(zigzag(body))
            # The same two multiplications as in ``RecordsBuilder.estimated_size``, so both agree to the byte.
            estimated: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.raw_size * self.ratio * self.margin)
            if self.position + size > capacity or estimated + size > self.limit:
                break
            position: cython.Py_ssize_t = put_varint(to, self.position, zigzag(body))
            position = put_int8(to, position, 0)
            position = put_varint(to, position, zigzag(delta))
            position = put_varint(to, position, zigzag(first_offset))
            position = put_cell(to, position, self.key_cells[row], key_size)
            position = put_cell(to, position, self.value_cells[row], value_size)
            self.position = put_section(to, position, self.header_cells[row], self.header_sizes[row])
            self.raw_size += size
            self.largest = max(self.largest, size)
            self.latest = max(self.latest, self.timestamps[row])
            first_offset += 1
            at += 1
        return at

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def write_values(
        self,
        at: cython.Py_ssize_t,
        until: cython.Py_ssize_t,
        to: cython.p_uchar,
        capacity: cython.Py_ssize_t,
        delta: cython.longlong,
        offset: cython.longlong,
    ) -> cython.Py_ssize_t:
        # As ``write``, for rows that differ only in their values: it takes fewer instructions and reads fewer arrays.
        position: cython.Py_ssize_t = self.position
        cells = self.value_cells
        sizes = self.value_sizes
        largest: cython.Py_ssize_t = self.largest
        value_size: cython.longlong = NO_SIZE
        rest: cython.longlong = 0
        while at < until:
            if sizes[at] != value_size:
                value_size = sizes[at]
                rest = 1 + varint_size(zigzag(delta)) + 1 + cell_size(value_size) + 1
            body: cython.longlong = rest + varint_size(zigzag(offset))
            size: cython.longlong = body + varint_size(zigzag(body))
            if position + size > capacity:
                break
            position = put_varint(to, position, zigzag(body))
            position = put_int8(to, position, 0)
            position = put_varint(to, position, zigzag(delta))
            position = put_varint(to, position, zigzag(offset))
            position = put_int8(to, position, NO_KEY)
            position = put_cell(to, position, cells[at], value_size)
            position = put_int8(to, position, 0)
            largest = max(largest, size)
            offset += 1
            at += 1
        self.raw_size += position - self.position
        if position > self.position:
            self.latest = max(self.latest, self.timestamps[0])
        self.position = position
        self.largest = largest
        return at


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def cell_size(size: cython.longlong) -> cython.longlong:
    # The bytes of a key or a value in a record; ``size`` is -1 for null.
    return varint_size(zigzag(size)) + (size if size > 0 else 0)


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def put_cell(
    to: cython.p_uchar, at: cython.Py_ssize_t, cell: cython.p_const_uchar, size: cython.longlong
) -> cython.Py_ssize_t:
    at = put_varint(to, at, zigzag(size))
    return put_raw(to, at, cell, size) if size > 0 else at


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def put_section(
    to: cython.p_uchar, at: cython.Py_ssize_t, section: cython.p_const_uchar, size: cython.longlong
) -> cython.Py_ssize_t:
    # A section of one byte says that there are no headers.  A copy would be a call for each row.
    return put_int8(to, at, 0) if size == 1 else put_raw(to, at, section, size)
