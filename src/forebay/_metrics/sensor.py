"""What is counted, one object a quantity: plain fields that the owner of the counted state updates.

``record`` takes no lock, reads no time and touches no dictionary.  Each sensor has one writer, the sender's
thread; what other threads count, too, goes into a ``SharedSensor``.
Windows are closed from outside by the registry; ``total`` and ``count`` never go back, so closing only notes
where they were, and the one field it resets is the maximum.
"""

from __future__ import annotations

from typing import Any

import cython

_NOTHING = float("-inf")


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
        self.closed: list[list[Any]] = []  # by ``new_window``, the oldest first

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
        A value that another thread records meanwhile goes into the old or the new window; only interpreted may its
        claim to be the maximum be lost.
        """
        self.close_into(new_window(), next_start, expired)

    @cython.cfunc
    @cython.exceptval(-1)
    def close_into(self, window: list[Any], next_start: cython.double, expired: cython.double) -> cython.int:
        """As ``close_window``, with a ``new_window()`` to fill.

        Makes no object that the garbage collector tracks, so compiled it runs no finaliser: a lock may be held.
        """
        if next_start <= self.opened:
            return 0
        if self.opened > expired:
            window[0] = self.opened
            window[1] = self.total - self.base_total
            window[2] = self.count - self.base_count
            window[3] = self.maximum
            self.closed.append(window)
        self.maximum = _NOTHING
        self.base_total = self.total
        self.base_count = self.count
        self.opened = next_start
        while len(self.closed) > 0 and self.closed[0][0] <= expired:
            del self.closed[0]
        return 0

    def windowed(self, expired: cython.double) -> tuple[float, int, float, float]:
        """Of the windows that began after ``expired``: sum, number, maximum (-inf: none), start of the first."""
        total: cython.double = self.total - self.base_total
        count: cython.longlong = self.count - self.base_count
        maximum: cython.double = self.maximum
        start: cython.double = self.opened
        for window in self.closed:
            if window[0] > expired:
                total += window[1]
                count += window[2]
                maximum = max(maximum, window[3])
                start = min(start, window[0])
        return total, count, maximum, start


def new_window() -> list[Any]:
    """Room for what is kept of a closed window: its start, sum, number and maximum."""
    return [0.0, 0.0, 0, _NOTHING]


TOPIC_FIELDS = ("records", "bytes", "compression_rate", "retries", "errors")
NODE_FIELDS = ("requests", "bytes_out", "responses", "bytes_in", "latency")


@cython.final
@cython.cclass
class TopicSensors:
    """One topic's; recorded by the sender thread.

    ``records`` and ``bytes`` count per batch of a produce request, the bytes as sent; ``retries`` records sent again,
    ``errors`` records failed.
    """

    def __init__(
        self, *, records: Sensor, bytes: Sensor, compression_rate: Sensor, retries: Sensor, errors: Sensor
    ) -> None:
        self.records = records
        self.bytes = bytes
        self.compression_rate = compression_rate
        self.retries = retries
        self.errors = errors


@cython.final
@cython.cclass
class NodeSensors:
    """One node's; recorded by the sender thread: sizes of requests and responses, and ms from one to the other."""

    def __init__(
        self, *, requests: Sensor, bytes_out: Sensor, responses: Sensor, bytes_in: Sensor, latency: Sensor
    ) -> None:
        self.requests = requests
        self.bytes_out = bytes_out
        self.responses = responses
        self.bytes_in = bytes_in
        self.latency = latency
