"""A fingerprint of rows: the same rows have the same number, in any order and in any pieces."""

from __future__ import annotations

import cython
from cython.cimports.forebay._runtime.primitives import MAX_INT32, bytes_pointer, no_bytes
from cython.cimports.forebay._runtime.xxhash64 import xxhash64

from forebay._arrow.columns import BytesColumn
from forebay._records.rows import RowWindow
from forebay.errors import IllegalArgumentError
from forebay.producer._columns.columns import Columns

WINDOW = cython.declare(cython.Py_ssize_t, 2048)
NULL = cython.declare(cython.longlong, -1)
NULLS_SEED = cython.declare(cython.ulonglong, 0x6E756C6C)
"""What a null is hashed with, so that it is not an empty cell."""


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def cell(seed: cython.ulonglong, address: cython.p_const_uchar, size: cython.longlong) -> cython.ulonglong:
    if size < 0:
        return xxhash64(seed ^ NULLS_SEED, no_bytes(), 0)
    return xxhash64(seed, address, cython.cast(cython.Py_ssize_t, size))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def hash_window(rows: RowWindow, count: cython.Py_ssize_t) -> cython.ulonglong:
    """The sum of the rows' hashes, modulo 2^64."""
    total: cython.ulonglong = 0
    at: cython.Py_ssize_t
    for at in range(count):
        found: cython.ulonglong = cython.cast(cython.ulonglong, rows.partitions[at] + 1)
        found = cell(found, rows.key_cells[at], rows.key_sizes[at])
        found = cell(found, rows.value_cells[at], rows.value_sizes[at])
        if rows.header_sizes[at] > 1:
            found = cell(found, rows.header_cells[at], rows.header_sizes[at])
        total = (total + found) & cython.cast(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
    return total


def fingerprint(columns: Columns) -> int:
    """The sum modulo 2^64 of an XXH64 of each row's key, value, headers, partition and topic.

    Timestamps are left out: a repeated write may have other ones.

    Raises:
        IllegalArgumentError: headers or a partition that no record can have; ``append_columns`` says which row.
    """
    rows: RowWindow = RowWindow(min(WINDOW, max(columns.length, 1)))
    total: cython.ulonglong = 0
    at: cython.Py_ssize_t = 0
    while at < columns.length:
        count: cython.Py_ssize_t = load(columns, rows, at, min(rows.capacity, columns.length - at))
        if count == 0:
            raise IllegalArgumentError(f"row {at}: headers or partition that no record can have")
        found: cython.ulonglong
        if columns.topics is None:
            with cython.nogil:
                found = hash_window(rows, count)
        else:
            found = hash_topics(columns, rows, at, count)
        total = (total + found) & cython.cast(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
        at += count
    return total


@cython.cfunc
def load(columns: Columns, rows: RowWindow, at: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Fills the window from row ``at`` on; how many rows it has."""
    count = columns.fill_bytes(rows, at, count)
    if columns.partitions is not None:
        return columns.partitions.fill(at, count, NULL, MAX_INT32, rows.partitions)
    number: cython.Py_ssize_t
    partitions = rows.partitions
    for number in range(count):
        partitions[number] = NULL
    return count


@cython.cfunc
def hash_topics(columns: Columns, rows: RowWindow, at: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.ulonglong:
    """As ``hash_window``; the topic of a row is hashed with its partition."""
    number: cython.Py_ssize_t
    topics: BytesColumn = cython.cast(BytesColumn, columns.topics)
    for number in range(count):
        name: bytes = topics.get(at + number) or b""
        place: cython.ulonglong = xxhash64(
            cython.cast(cython.ulonglong, rows.partitions[number] + 1), bytes_pointer(name), len(name)
        )
        # Half of it, because a partition must not be negative.
        rows.partitions[number] = cython.cast(cython.longlong, place >> 1)
    return hash_window(rows, count)
