"""RowShare: the rows of a table that went into one batch, kept as runs, and what became of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

import cython
from cython.cimports.forebay._delivery.hearing import hear
from cython.cimports.forebay._delivery.result import COMPLETING, DONE
from cython.cimports.forebay._runtime.primitives import bytearray_pointer

from forebay._delivery.result import BatchResult
from forebay._runtime.threads import get_ident


class Run(NamedTuple):
    """Adjacent rows of a batch: ``at`` is the index of the first in the batch, ``rows`` are their numbers."""

    at: int
    rows: range | array[int]


class RowsOutcome(NamedTuple):
    """What became of some rows: acknowledged from ``base_offset`` on (-1: not known), or failed with ``error``."""

    rows: range | array[int]
    base_offset: int
    error: Any


@cython.final
@cython.cclass
class RowShare:
    """The rows of one call that went into one batch.

    Outcomes are read under a lock, so only compiled code may run: the constructor of a named tuple is Python code, and
    is not called.

    ``runs`` holds three numbers for each run: its index in the batch, its first row, and the number of adjacent rows.
    If the rows are not adjacent (a partition's part of a window), the third number is negative, and the distances of
    the rows from the first are the next ones in ``numbers``.  So rows without a key cost nothing here, others two
    bytes.
    """

    def __init__(self, result: BatchResult, timestamp: cython.longlong) -> None:
        self.result = result
        self.rows = 0
        self.counted = False
        self.base_timestamp = timestamp
        self.first_index = self.last_index = -1
        self.index = -1
        self.row = self.count = 0
        self.runs: array[int] | None = None
        self.numbers: bytearray | None = None

    @cython.cfunc
    def add(self, index: cython.int, row: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.void:
        """Adds rows ``row`` and ``count - 1`` more, from ``index`` of the batch on."""
        if self.rows == 0:
            self.first_index = index
        self.rows += count
        self.last_index = index + cython.cast(cython.int, count) - 1
        if index != self.index + self.count or row != self.row + self.count:
            self.end_run()
            self.index = index
            self.row = row
        self.count += count

    @cython.cfunc
    def add_scattered(
        self,
        index: cython.int,
        row: cython.Py_ssize_t,
        order: cython.pointer(cython.longlong),  # type: ignore[valid-type]
        at: cython.Py_ssize_t,
        until: cython.Py_ssize_t,
    ) -> cython.void:
        """Adds the rows ``row + order[at:until]``, from ``index`` of the batch on."""
        count: cython.Py_ssize_t = until - at
        first: cython.longlong = order[at]
        if order[until - 1] - first == count - 1:  # they ascend, so they are adjacent
            self.add(index, row + first, count)
            return
        self.end_run()
        if self.rows == 0:
            self.first_index = index
        self.rows += count
        self.last_index = index + cython.cast(cython.int, count) - 1
        packed: bytearray = bytearray(2 * count)
        to: cython.p_uchar = bytearray_pointer(packed)
        number: cython.Py_ssize_t
        for number in range(count):
            distance: cython.longlong = order[at + number]
            to[2 * number] = distance & 0xFF
            to[2 * number + 1] = distance >> 8
        if self.numbers is None:
            self.numbers = packed
        else:
            self.numbers.extend(packed)
        self._list().extend((index, row, -count))

    @cython.cfunc
    def end_run(self) -> cython.void:
        if self.count > 0:
            self._list().extend((self.index, self.row, self.count))
        self.index = -1
        self.count = 0

    def _list(self) -> array[int]:
        if self.runs is None:
            self.runs = array("q")
        return self.runs

    def listed(self) -> Iterator[Run]:
        """The runs in the order of the batch."""
        used = 0
        for index, row, count in self._triples():
            if count > 0:
                yield tuple.__new__(Run, (index, range(row, row + count)))
                continue
            packed = cython.cast(bytearray, self.numbers)[2 * used : 2 * (used - count)]
            used -= count
            yield tuple.__new__(Run, (index, array("q", [row + distance for distance in _distances(packed)])))
        if self.count > 0:
            yield tuple.__new__(Run, (self.index, range(self.row, self.row + self.count)))

    def _triples(self) -> list[tuple[int, int, int]]:
        runs = self.runs if self.runs is not None else array("q")
        return list(zip(runs[0::3], runs[1::3], runs[2::3], strict=True))

    @cython.ccall
    def unfinished_index(self) -> cython.int:
        """The index of a record that has no outcome yet, -1 if none is left.

        In a callback the batch that calls it counts as finished.
        """
        if self.result.parts is None:
            return -1 if is_over(self.result) else self.last_index
        if self.result.state == DONE:
            return -1
        for index, count in self._indices():
            end: int = index + count
            while index < end:
                part: BatchResult = self.result.leaf(index)
                if not is_over(part):
                    return index
                index = part.first + part.record_count
        return -1

    def _indices(self) -> list[tuple[int, int]]:
        found = [(index, abs(count)) for index, row, count in self._triples()]
        return [*found, (self.index, self.count)] if self.count > 0 else found

    def hear(self) -> None:
        """Somebody hears of the rows that failed."""
        for index, count in self._indices():
            for at in range(index, index + count):
                hear(self.result, at)

    def outcomes(self) -> Iterator[RowsOutcome]:
        """What became of the rows, once all have an outcome.  Of acknowledged rows only the number may be right."""
        result: BatchResult = self.result
        together: cython.bint = self.last_index - self.first_index + 1 == self.rows
        if together and result.parts is None and result.error is None:
            yield from _of_part(result, self.first_index, range(self.rows))
            return
        for run in self.listed():
            if self.result.parts is None:
                yield from _of_part(self.result, run.at, run.rows)
                continue
            begin = 0
            while begin < len(run.rows):
                part: BatchResult = self.result.leaf(run.at + begin)
                end = min(len(run.rows), part.first + part.record_count - run.at)
                yield from _of_part(part, run.at + begin, run.rows[begin:end])
                begin = end


@cython.cfunc
def is_over(result: BatchResult) -> cython.bint:
    if result.state == COMPLETING:
        return result.completing_thread == get_ident()
    return result.state == DONE and result.parts is None


def _distances(packed: bytearray) -> list[int]:
    return [low | high << 8 for low, high in zip(packed[0::2], packed[1::2], strict=True)]


def _of_part(part: BatchResult, index: int, rows: range | array[int]) -> Iterator[RowsOutcome]:
    if part.error is None:
        base = part.base_offset
        yield tuple.__new__(RowsOutcome, (rows, base + index - part.first if base >= 0 else -1, None))
    elif not part.record_errors:
        yield tuple.__new__(RowsOutcome, (rows, -1, part.error))
    else:
        # The broker named records (KIP-467), so each row has its own error.
        for at in range(len(rows)):
            error = part.record_errors.get(index + at - part.first, part.error)
            yield tuple.__new__(RowsOutcome, (rows[at : at + 1], -1, error))
