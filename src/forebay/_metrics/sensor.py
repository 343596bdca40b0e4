"""Sensor: one counted quantity, as plain fields that the owner of the counted state updates.

``record`` takes no lock, reads no time and uses no dictionary.  A Sensor has one writer, the sender's thread.  A
SharedSensor may have several.  The registry closes windows.  ``total`` and ``count`` never decrease, so closing only
notes their values, and resets the maximum.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._runtime.memory import drop_numbers, more_numbers, no_numbers
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release

_NOTHING = float("-inf")


# Neither this nor SharedSensor is tracked by the garbage collector, which would walk those of all producers again and
# again.  They refer to numbers alone.
@cython.no_gc
@cython.cclass
class Sensor:
    """Sum, number and maximum of the recorded values, since ever and for the last windows."""

    def __init__(self, now: float) -> None:
        """``now`` is when counting starts: rates of a young sensor are over its own age, not the window's."""
        self.total = 0.0
        self.count = 0
        self.born = now
        self.maximum = _NOTHING
        self.base_total = 0.0
        self.base_count = 0
        self.opened = now
        self.closed: list[list[Any]] | None = None  # by ``room``, the oldest first; None until a window is over

    @cython.ccall
    @cython.exceptval(check=False)
    def record(self, value: cython.double) -> cython.void:
        """Counts one event of size ``value``."""
        self.total += value
        self.count += 1
        if value > self.maximum:
            self.maximum = value

    @cython.ccall
    @cython.exceptval(check=False)
    def record_many(self, total: cython.double, count: cython.longlong, maximum: cython.double) -> cython.void:
        """Counts ``count`` events that add up to ``total`` at once, such as a batch's records."""
        self.total += total
        self.count += count
        if maximum > self.maximum:
            self.maximum = maximum

    def close_window(self, next_start: cython.double, expired: cython.double) -> None:
        """Begins a new window at ``next_start`` and forgets those that began at ``expired`` or before.

        Does nothing if that window or a later one is open: several threads may find at the same time that one is over.
        A value that another thread records meanwhile goes into the old or the new window.  In the interpreted form
        the maximum may miss it.
        """
        self.close_into(room(), next_start, expired)

    @cython.cfunc
    @cython.exceptval(-1)
    def close_into(self, windows: list[Any], next_start: cython.double, expired: cython.double) -> cython.int:
        """As ``close_window``, with ``room()`` to fill.

        Makes no object that the garbage collector tracks, so compiled it runs no finaliser: a lock may be held.
        """
        if next_start <= self.opened:
            return 0
        if self.opened > expired:
            window: list[Any] = windows[0]
            window[0] = self.opened
            window[1] = self.total - self.base_total
            window[2] = self.count - self.base_count
            window[3] = self.maximum
            if self.closed is None:
                self.closed = windows
            else:
                self.closed.append(window)
        self.maximum = _NOTHING
        self.base_total = self.total
        self.base_count = self.count
        self.opened = next_start
        while self.closed and self.closed[0][0] <= expired:
            del self.closed[0]
        return 0

    def windowed(self, expired: cython.double) -> tuple[float, int, float, float]:
        """Of the windows that began after ``expired``: sum, number, maximum (-inf: none), start of the first."""
        total: cython.double = self.total - self.base_total
        count: cython.longlong = self.count - self.base_count
        maximum: cython.double = self.maximum
        start: cython.double = self.opened
        for window in self.closed or ():
            if window[0] > expired:
                total += window[1]
                count += window[2]
                maximum = max(maximum, window[3])
                start = min(start, window[0])
        return total, count, maximum, start


def room() -> list[Any]:
    """A list of one window, for what is kept of it once it is closed: its start, sum, number and maximum."""
    return [[0.0, 0.0, 0, _NOTHING]]


@cython.final
@cython.no_gc
@cython.cclass
class SharedSensor:
    """As ``Sensor``, for several writers: for rare or slow events such as waits, refusals and failures.

    No other lock is taken under ``lock``.  The sender's thread takes it too, and a signal handler or a finaliser may
    record.  So this is compiled, and neither Python code nor the garbage collector runs under the lock.
    """

    def __init__(self, now: cython.double) -> None:
        """``now`` as in ``Sensor``."""
        if not cython.compiled:
            self.lock = Mutex()
        self.sensor = Sensor(now)

    @property
    def total(self) -> float:
        return self.sensor.total

    @property
    def count(self) -> int:
        return self.sensor.count

    @property
    def born(self) -> float:
        return self.sensor.born

    def record(self, value: cython.double) -> None:
        """Counts one event of size ``value``; any thread."""
        acquire(self.lock)
        try:
            self.sensor.record(value)
        finally:
            release(self.lock)

    def record_many(self, total: cython.double, count: cython.longlong, maximum: cython.double) -> None:
        """Counts ``count`` events that add up to ``total`` at once; any thread."""
        acquire(self.lock)
        try:
            self.sensor.record_many(total, count, maximum)
        finally:
            release(self.lock)

    def close_window(self, next_start: cython.double, expired: cython.double) -> None:
        """As ``Sensor.close_window``; a value that is recorded meanwhile still counts for the maximum."""
        windows: list[Any] = room()  # before the lock is taken: the garbage collector may run here
        acquire(self.lock)
        try:
            self.sensor.close_into(windows, next_start, expired)
        finally:
            release(self.lock)

    def windowed(self, expired: cython.double) -> tuple[float, int, float, float]:
        """As ``Sensor.windowed``; without the lock, because the tuple may run the garbage collector."""
        return self.sensor.windowed(expired)


LEAST_MS = cython.declare(cython.double, 0.5)
LAST = cython.declare(cython.int, 19)

BOUNDS_MS = tuple(0.5 * 2**at for at in range(19))
"""The upper bounds of a histogram's buckets, each twice the one before; the bucket behind them has no bound."""


@cython.final
@cython.cclass
class Histogram:
    """How many values lie in each of fixed buckets (``BOUNDS_MS``, each bound in its bucket), and their sum.

    The sender's thread records.  Any thread reads.
    """

    def __init__(self) -> None:
        self.total = 0.0
        self.numbers = more_numbers(no_numbers(), 0, LAST + 1)
        at: cython.int
        for at in range(LAST + 1):
            self.numbers[at] = 0

    def __dealloc__(self) -> None:
        drop_numbers(self.numbers)

    @cython.ccall
    @cython.exceptval(check=False)
    def record_even(self, low: cython.double, high: cython.double, count: cython.longlong) -> cython.void:
        """Counts ``count`` values that lie evenly between ``low`` and ``high``, as the ages of a batch's records do."""
        self.total += (low + high) / 2 * count
        at: cython.int = 0
        bound: cython.double = LEAST_MS
        while bound < low and at < LAST:
            bound *= 2
            at += 1
        counted: cython.longlong = 0
        while bound < high and at < LAST:
            below: cython.longlong = cython.cast(cython.longlong, count * ((bound - low) / (high - low)))
            self.numbers[at] += below - counted
            counted = below
            bound *= 2
            at += 1
        self.numbers[at] += count - counted

    def buckets(self) -> tuple[int, ...]:
        """How many values are in each bucket; the last one has what is above all bounds."""
        return tuple([self.numbers[at] for at in range(LAST + 1)])


TOPIC_FIELDS = ("records", "bytes", "compression_rate", "retries", "errors")
NODE_FIELDS = ("requests", "bytes_out", "responses", "bytes_in", "latency")


@cython.final
@cython.cclass
class TopicSensors:
    """One topic's; recorded by the sender's thread.

    ``records`` and ``bytes`` count per batch of a produce request, the bytes as sent; ``retries`` records sent again,
    ``errors`` records failed.  ``ack_time`` has the ms from send to acknowledgement of each record.
    """

    def __init__(
        self,
        *,
        records: Sensor,
        bytes: Sensor,
        compression_rate: Sensor,
        retries: Sensor,
        errors: Sensor,
        ack_time: Histogram,
    ) -> None:
        self.records = records
        self.bytes = bytes
        self.compression_rate = compression_rate
        self.retries = retries
        self.errors = errors
        self.ack_time = ack_time

    @cython.cfunc
    @cython.exceptval(check=False)
    def count_acks(
        self,
        records: cython.longlong,
        span: cython.double,
        created: cython.double,
        drained: cython.double,
        now: cython.double,
    ) -> cython.void:
        """A batch was acknowledged.  Its records were sent evenly within ``span`` ms, but none after it was drained.

        Args:
            span: between its first and its latest timestamp, which callers may set as they like.
            created: when its first record was sent.
        """
        self.ack_time.record_even(now - created - max(0.0, min(span, drained - created)), now - created, records)


@cython.final
@cython.cclass
class NodeSensors:
    """One node's; recorded by the sender's thread: sizes of requests and responses, and ms from one to the other."""

    def __init__(
        self, *, requests: Sensor, bytes_out: Sensor, responses: Sensor, bytes_in: Sensor, latency: Sensor
    ) -> None:
        self.requests = requests
        self.bytes_out = bytes_out
        self.responses = responses
        self.bytes_in = bytes_in
        self.latency = latency

    @cython.cfunc
    @cython.exceptval(check=False)
    def count_request(self, size: cython.Py_ssize_t) -> cython.void:
        """A request of ``size`` bytes is queued for the node."""
        self.requests.record(size)
        self.bytes_out.record(size)

    @cython.cfunc
    @cython.exceptval(check=False)
    def count_response(self, size: cython.Py_ssize_t, latency: cython.double) -> cython.void:
        """An answer of ``size`` bytes has come, ``latency`` ms after its request."""
        self.responses.record(size)
        self.bytes_in.record(size)
        self.latency.record(latency)
