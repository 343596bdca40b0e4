"""A sensor that any thread may record to: the same numbers, under a lock of its own.

For what is rare or slow anyway (waits, refusals, failures); what happens once a record or request keeps to a
``Sensor`` with a single writer.
"""

from __future__ import annotations

from forebay._metrics.sensor import Sensor
from forebay._runtime.threads import RLock


class SharedSensor:
    """As ``Sensor``, for several writers."""

    __slots__ = ("_lock", "_sensor")

    def __init__(self, now: float) -> None:
        """``now`` as in ``Sensor``."""
        # Re-entrant: a signal handler or a finaliser of the user, run between two lines below, may send a record.
        # A leaf: nothing else is locked under it.
        self._lock = RLock()
        self._sensor = Sensor(now)

    @property
    def total(self) -> float:
        return self._sensor.total

    @property
    def count(self) -> int:
        return self._sensor.count

    @property
    def born(self) -> float:
        return self._sensor.born

    def record(self, value: float) -> None:
        """Counts one event of size ``value``; any thread."""
        with self._lock:
            self._sensor.record(value)

    def record_many(self, total: float, count: int, maximum: float) -> None:
        """Counts ``count`` events that add up to ``total`` at once; any thread."""
        with self._lock:
            self._sensor.record_many(total, count, maximum)

    def close_window(self, next_start: float, expired: float) -> None:
        """As ``Sensor.close_window``; no value that is recorded meanwhile loses its claim to be the maximum."""
        with self._lock:
            self._sensor.close_window(next_start, expired)

    def windowed(self, expired: float) -> tuple[float, int, float, float]:
        """As ``Sensor.windowed``."""
        with self._lock:
            return self._sensor.windowed(expired)
