"""TopicTable: from the cells of a topic column to topics, without the GIL where a topic was seen before."""

from __future__ import annotations

import cython
from cython.cimports.forebay._runtime.memory import drop_addresses, drop_numbers, new_addresses, new_numbers, same_bytes
from cython.cimports.forebay._runtime.primitives import bytes_pointer, murmur2

from forebay._accumulator.topic import TopicState
from forebay._arrow.columns import BytesColumn
from forebay._records.rows import RowWindow

SLOTS = cython.declare(cython.Py_ssize_t, 1024)
UNKNOWN = cython.declare(cython.Py_ssize_t, -1)


@cython.final
@cython.cclass
class TopicTable:
    """The topics of one call, numbered in the order of their first use.  One thread.

    A cell has one slot, by its hash.  If two names share a slot, the last one used has it, and ``numbers`` has the
    other.  ``none`` is the number of the topic for null cells.
    """

    def __init__(self) -> None:
        self.states: list[TopicState] = []
        self.numbers: dict[bytes, int] = {}
        # The slots hold addresses of these objects.
        self.names: list[bytes] = []
        self.cells = new_addresses(SLOTS)
        self.sizes = new_numbers(SLOTS)
        self.known = new_numbers(SLOTS)
        self.counts = new_numbers(1)
        self.counts_size = 1
        self.none = UNKNOWN
        slot: cython.Py_ssize_t
        for slot in range(SLOTS):
            self.sizes[slot] = -1

    def __dealloc__(self) -> None:
        drop_addresses(self.cells)
        drop_numbers(self.sizes)
        drop_numbers(self.known)
        drop_numbers(self.counts)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def add(self, name: bytes | None, state: TopicState) -> cython.Py_ssize_t:
        """The number of the topic with this name; None for null cells."""
        number: cython.Py_ssize_t = len(self.states)
        if name is None:
            if self.none < 0:
                self.states.append(state)
                self.names.append(b"")
                self.none = number
            return self.none
        if name not in self.numbers:
            self.states.append(state)
            self.names.append(name)
            self.numbers[name] = number
        self.remember(name)
        found: cython.Py_ssize_t = self.numbers[name]
        return found

    @cython.cfunc
    def remember(self, name: bytes) -> cython.void:
        number: cython.Py_ssize_t = self.numbers[name]
        # The object in ``names``, which lives as long as the slots.
        own: bytes = self.names[number]
        slot: cython.Py_ssize_t = murmur2(bytes_pointer(own), len(own)) % SLOTS
        self.cells[slot] = bytes_pointer(own)
        self.sizes[slot] = len(own)
        self.known[slot] = number

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def find(self, cell: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        if size < 0:
            return self.none
        slot: cython.Py_ssize_t = murmur2(cell, size) % SLOTS
        if self.sizes[slot] == size and (size == 0 or same_bytes(self.cells[slot], cell, size)):
            return self.known[slot]
        return UNKNOWN

    @cython.cfunc
    def count_partitions(self) -> cython.void:
        # Once for each window: the sender's thread may apply newer metadata at any moment.
        number: cython.Py_ssize_t
        if self.counts_size < len(self.states):
            counts = new_numbers(2 * len(self.states))
            drop_numbers(self.counts)
            self.counts = counts
            self.counts_size = 2 * len(self.states)
        state: TopicState
        for number in range(len(self.states)):
            state = self.states[number]
            self.counts[number] = 0 if state.missing else state.partition_count

    @cython.cfunc
    def assign(
        self, column: BytesColumn, rows: RowWindow, row: cython.Py_ssize_t, count: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Writes topic numbers and partition counts to ``rows``; returns the rows before the first unknown topic."""
        self.count_partitions()
        # The topics' cells use the place of the values' cells, because only this method needs them.
        rows.values.fill(column, row, count)
        done: cython.Py_ssize_t = 0
        name: bytes | None
        while done < count:
            with cython.nogil:
                done = self.number_rows(rows, done, count)
            if done < count:
                name = column.get(row + done)
                if name is None or name not in self.numbers or self.counts[self.numbers[name]] == 0:
                    break
                self.remember(name)
        return done

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def number_rows(self, rows: RowWindow, first: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        at: cython.Py_ssize_t
        for at in range(first, count):
            number: cython.Py_ssize_t = self.find(rows.value_cells[at], rows.value_sizes[at])
            if number < 0 or self.counts[number] == 0:
                return at
            rows.topics[at] = number
            rows.limits[at] = self.counts[number]
        return count
