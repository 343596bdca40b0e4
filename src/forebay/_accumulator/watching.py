"""BatchWatch: what a trace needs of each batch, read out of its encoded records when it closes, and its outcome.

No key and no value is copied.  Nothing here waits, and nothing raises into a producer: what there is no room for is
counted.  The thread that writes the trace takes what is done (``take``).
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._accumulator.states import CLOSED
from cython.cimports.forebay._runtime.memory import new_bytearray
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release
from cython.cimports.forebay._runtime.primitives import (
    MAX_INT32,
    bytearray_pointer,
    bytes_at,
    prefetch,
    put_int32,
    put_int64,
)

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.pool import Buffer
from forebay._accumulator.records import RecordsBuilder
from forebay._runtime.clock import Clock

NUMBER = cython.declare(cython.Py_ssize_t, 4)
"""Bytes of a number in a column; the largest first."""
OF_A_BATCH = cython.declare(cython.Py_ssize_t, 500)
"""Bytes that a batch takes here beside its columns."""
AHEAD = cython.declare(cython.Py_ssize_t, 6)
"""Records that are asked of memory before they are read: they are in another processor's cache."""
LOOKS = cython.declare(cython.int, 50_000)
"""At a clock that stands still, as one of a test does."""
NEAR_MS = cython.declare(cython.longlong, 2)
"""A record whose timestamp is that far from its batch's time was stamped by its sender."""


@cython.final
@cython.cclass
class BatchWatch:
    """Any thread closes batches; the sender's thread gives outcomes; one thread takes what is done.

    Args:
        clock: the producer's.
        every: records of one moment (1 ms) of so many are noted; 1: all.
        most: bytes that may wait to be taken.
    """

    def __init__(self, clock: Clock, every: cython.int, most: cython.longlong) -> None:
        self.clock = clock
        self.every = every
        self.room = most
        self.is_over = False
        first_ms: cython.longlong = clock.wall()
        for _ in range(LOOKS):  # until a millisecond begins
            if clock.wall() != first_ms:
                break
        self.ahead_us = clock.wall() * 1000 - cython.cast(cython.longlong, clock.now() * 1000)
        self.left_out_batches = self.left_out_records = 0
        self.open: dict[Any, Any] = {}
        self.done: list[Any] = []
        self.topics: dict[str, int] = {}
        self.begun_us = cython.cast(cython.longlong, clock.now() * 1000)
        self.failure: Any = None
        if not cython.compiled:
            self.lock = Mutex()

    def closing(self, batches: list[Any]) -> None:
        """Notes the records of batches that are about to be closed; a second time it does nothing."""
        if self.is_over:
            return
        try:
            for batch in batches:
                self.note(batch)
        except Exception as error:  # noqa: BLE001 - a record must not be lost for a trace
            self.failure = error

    def ended(self, batch: Any, outcome: int, now: float | None = None) -> None:
        """Notes what became of a batch; a second time it does nothing.

        Args:
            outcome: as ``states.SUCCEEDED``.
            now: monotonic ms, if it is not the time of the call; callbacks may have run since the answer.
        """
        try:
            at: cython.double = self.clock.now() if now is None else now
            self.end(batch, outcome, cython.cast(cython.longlong, at * 1000))
        except Exception as error:  # noqa: BLE001 - as above
            self.failure = error

    def tune_clock(self) -> None:
        """Learns how far the wall clock is ahead; it tells whole ms, so the most that is seen is the truest."""
        ahead: cython.longlong = self.clock.wall() * 1000 - cython.cast(cython.longlong, self.clock.now() * 1000)
        if ahead > self.ahead_us or ahead < self.ahead_us - 1000 * NEAR_MS:
            self.ahead_us = ahead

    def take(self) -> list[Any]:
        """What is done since the last call, four values for each batch: its numbers, and the columns of its records.

        Of the numbers each has 64 bits, the largest first, as the columns of a trace's file are named.
        """
        fresh: list[Any] = []
        acquire(self.lock)
        done: list[Any] = self.done
        self.done = fresh
        release(self.lock)
        return done

    def taken(self, size: int) -> None:
        """So many bytes wait no longer."""
        acquire(self.lock)
        self.room += size
        release(self.lock)

    def stop(self) -> None:
        """No further batch is noted; outcomes of those that were still are."""
        self.is_over = True

    def end_all(self) -> None:
        """What has no outcome yet is done without."""
        for batch in list(self.open):
            self.ended(batch, 0, 0.0)

    @cython.cfunc
    @cython.exceptval(-1)
    def takes(self, size: cython.Py_ssize_t, records: cython.int) -> cython.bint:
        acquire(self.lock)
        there_is: cython.bint = self.room >= size
        if there_is:
            self.room -= size
        else:
            self.left_out_batches += 1
            self.left_out_records += records
        release(self.lock)
        return there_is

    @cython.cfunc
    def note(self, batch: ProducerBatch) -> object:
        records: RecordsBuilder = batch.records
        # A part of a split has no limit: its records were noted with the batch that was split.
        if batch.life == CLOSED or records.buffer_count() == 0 or records.write_limit == MAX_INT32:
            return None
        if batch in self.open:
            return None
        batch.close_for_appends()
        if not self.takes(room_of(batch.record_count), batch.record_count):
            return None
        closed_us: cython.longlong = cython.cast(cython.longlong, self.clock.now() * 1000)
        columns: tuple[Any, ...] = columns_of(records, batch, closed_us, self.ahead_us, self.every)
        self.open[batch] = (closed_us, *columns)
        return None

    @cython.cfunc
    def end(self, batch: ProducerBatch, outcome: cython.int, now_us: cython.longlong) -> object:
        found: Any = self.open.pop(batch, None)
        if found is None:
            return None
        closed_us, kept, times, keys, values = found
        row: bytes = self.row(batch, kept, closed_us, now_us, outcome)
        acquire(self.lock)
        self.done.extend((row, times, keys, values))
        release(self.lock)
        return None

    @cython.cfunc
    def row(
        self,
        batch: ProducerBatch,
        kept: cython.longlong,
        closed_us: cython.longlong,
        ended_us: cython.longlong,
        outcome: cython.int,
    ) -> bytes:
        row: bytearray = new_bytearray(8 * 13)
        to: cython.p_uchar = bytearray_pointer(row)
        drained_us: cython.longlong = cython.cast(cython.longlong, batch.drained * 1000)
        at: cython.Py_ssize_t = put_int64(to, 0, self.topics.setdefault(batch.topic, len(self.topics)))
        at = put_int64(to, at, batch.partition)
        at = put_int64(to, at, batch.record_count)
        at = put_int64(to, at, kept)
        at = put_int64(to, at, cython.cast(cython.longlong, batch.created * 1000) - self.begun_us)
        at = put_int64(to, at, closed_us - self.begun_us)
        at = put_int64(to, at, drained_us - self.begun_us if drained_us > 0 else 0)
        at = put_int64(to, at, ended_us - self.begun_us if ended_us > 0 else 0)
        at = put_int64(to, at, batch.last_node)
        at = put_int64(to, at, batch.attempts)
        at = put_int64(to, at, outcome)
        at = put_int64(to, at, batch.records.raw_size)
        at = put_int64(to, at, batch.records.estimated_size())
        return bytes_at(to, 0, at)


@cython.ccall
@cython.exceptval(check=False)
def room_of(records: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Bytes that a batch of so many records takes until it is written."""
    return OF_A_BATCH + 3 * NUMBER * records


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def after_varint(base: cython.p_uchar, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    while base[at] & 0x80:
        at += 1
    return at + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def varint_at(base: cython.p_uchar, at: cython.Py_ssize_t) -> cython.longlong:
    value: cython.ulonglong = base[at] & 0x7F
    shift: cython.int = 7
    while base[at] & 0x80:
        at += 1
        value |= cython.cast(cython.ulonglong, base[at] & 0x7F) << shift
        shift += 7
    half: cython.longlong = cython.cast(cython.longlong, value >> 1)
    return -half - 1 if value & 1 else half


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def lacks_moment(first_ms: cython.longlong, last_ms: cython.longlong, every: cython.int) -> cython.bint:
    """Whether none of these milliseconds is one that a sample keeps."""
    return last_ms // every == (first_ms - 1) // every


@cython.cfunc
def columns_of(
    records: RecordsBuilder,
    batch: ProducerBatch,
    closed_us: cython.longlong,
    ahead_us: cython.longlong,
    every: cython.int,
) -> tuple[Any, ...]:
    """How many records were kept; their times in us, each from the one before, and sizes of keys and values.

    The first record's time is that of the batch, since when it is known exactly.  Timestamps are whole ms.  If they are
    not of the time in which the batch was open, its records are taken to have come evenly.
    """
    count: cython.int = batch.record_count
    created_us: cython.longlong = cython.cast(cython.longlong, batch.created * 1000)
    created_ms: cython.longlong = (created_us + ahead_us) // 1000
    last_ms: cython.longlong = (closed_us + ahead_us) // 1000 + NEAR_MS
    foreign: cython.bint = not created_ms - NEAR_MS <= records.max_timestamp <= last_ms
    if every > 1 and not foreign and lacks_moment(created_ms, max(created_ms, records.max_timestamp), every):
        return 0, b"", b"", b""
    if records.chunk is not None:
        records.chunk.used = records.position
    columns: bytearray = new_bytearray(3 * NUMBER * count)
    to: cython.p_uchar = bytearray_pointer(columns)
    step_us: cython.longlong = (closed_us - created_us) // max(count, 1) if foreign else -1
    kept: cython.Py_ssize_t = walk(records, count, to, created_us, closed_us, step_us, ahead_us, every)
    return (kept, *[bytes_at(to, NUMBER * row, NUMBER * kept) for row in (0, count, 2 * count)])


@cython.cfunc
@cython.exceptval(-1)
def walk(
    records: RecordsBuilder,
    count: cython.Py_ssize_t,
    to: cython.p_uchar,
    created_us: cython.longlong,
    closed_us: cython.longlong,
    step_us: cython.longlong,
    ahead_us: cython.longlong,
    every: cython.int,
) -> cython.Py_ssize_t:
    """Puts the records into three columns of ``count`` numbers each; how many were kept.

    Args:
        step_us: between two records, where their timestamps say nothing; -1 where they do.
    """
    first_ms: cython.longlong = (created_us + ahead_us) // 1000 - NEAR_MS
    time_us: cython.longlong = created_us
    before_us: cython.longlong = created_us
    kept: cython.Py_ssize_t = 0
    number: cython.Py_ssize_t = 0
    chunk: Buffer
    for chunk in records.buffers:
        base: cython.p_uchar = chunk.base
        at: cython.Py_ssize_t = 0
        while at < chunk.used and number < count:
            inside: cython.Py_ssize_t = after_varint(base, at) + 1  # attributes
            size: cython.Py_ssize_t = inside - 1 - at + varint_at(base, at)
            prefetch(base, at + AHEAD * size)
            at += size
            stamp_ms: cython.longlong = records.base_timestamp + varint_at(base, inside)
            if step_us >= 0:
                time_us = created_us + number * step_us
            elif number > 0 and stamp_ms > first_ms:
                time_us = max(time_us, min(stamp_ms * 1000 - ahead_us, closed_us))
            number += 1
            if every == 1 or (time_us + ahead_us) // 1000 % every == 0:
                put_int32(to, NUMBER * kept, min(time_us - before_us, MAX_INT32))
                put_sizes(to, count, kept, base, after_varint(base, after_varint(base, inside)))
                before_us = time_us
                kept += 1
    return kept


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def put_sizes(
    to: cython.p_uchar,
    count: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    base: cython.p_uchar,
    inside: cython.Py_ssize_t,
) -> cython.void:
    """The sizes of key and value, of which the first stands at ``inside``, into row ``at`` of their columns."""
    size: cython.longlong = varint_at(base, inside)
    put_int32(to, NUMBER * (count + at), size)
    put_int32(to, NUMBER * (2 * count + at), varint_at(base, after_varint(base, inside) + max(size, 0)))
