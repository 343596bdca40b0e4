"""A sensor that any thread may record to: the same numbers, under a lock of its own.

For what is rare or slow anyway (waits, refusals, failures); what happens once a record or request keeps to a
``Sensor`` with a single writer.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._metrics.sensor import Sensor
from cython.cimports.forebay._runtime.mutex import Mutex, acquire, release

from forebay._metrics.sensor import new_window


@cython.final
@cython.cclass
class SharedSensor:
    """As ``Sensor``, for several writers.

    ``lock`` is a leaf.  The sender's thread takes it too, and a signal handler or a finaliser may record.  So this is
    compiled, and neither Python code nor the garbage collector runs under the lock.
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
        """As ``Sensor.close_window``; no value that is recorded meanwhile loses its claim to be the maximum."""
        window: list[Any] = new_window()  # before the lock is taken: the garbage collector may run here
        acquire(self.lock)
        try:
            self.sensor.close_into(window, next_start, expired)
        finally:
            release(self.lock)

    def windowed(self, expired: cython.double) -> tuple[float, int, float, float]:
        """As ``Sensor.windowed``; without the lock, because the tuple may run the garbage collector."""
        return self.sensor.windowed(expired)
