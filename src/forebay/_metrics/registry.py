"""Names, windows and reading: sensors go in, a snapshot of every metric by its Java name comes out.

Rates, averages and maxima are over sliding windows (``metrics.num.samples`` of ``metrics.sample.window.ms``);
totals are since the start.  Any thread may read; the windows roll in the sender's turns and before each reading.
There is no lock, because a signal handler may read while it interrupts a reader.  One thread adds names, readers copy
them in one step, and a sensor ignores a second close of the same window.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import NamedTuple

from forebay._metrics.sensor import Sensor
from forebay._metrics.shared import SharedSensor

MetricValue = float | int | str


class MetricName(NamedTuple):
    """A metric's identity: name and group are the Java client's; the tags say whose it is."""

    name: str
    group: str
    description: str
    tags: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        tags = ",".join(f"{key}={value}" for key, value in self.tags)
        return f"{self.group}:{self.name}" + (f"[{tags}]" if tags else "")


class Kind(enum.Enum):
    """What is read from a sensor."""

    TOTAL = "sum of the values since the start"
    COUNT_TOTAL = "number of events since the start"
    RATE = "sum of the values a second"
    COUNT_RATE = "number of events a second"
    AVG = "mean of the values"
    MAX = "largest value"
    RATIO = "share of the time, from values in nanoseconds"


class MetricsSnapshot(dict[MetricName, MetricValue]):
    """All metrics at one moment."""

    def value(self, name: str, group: str = "producer-metrics", **tags: str) -> MetricValue:
        """The metric of this name and group with at least these tags (``topic="t"``, ``node_id="node-1"``).

        Raises:
            KeyError: there is none, or more than one.
        """
        wanted = {(key.replace("_", "-"), value) for key, value in tags.items()}
        found = [key for key in self if key.name == name and key.group == group and wanted <= set(key.tags)]
        if len(found) != 1:
            raise KeyError(f"{len(found)} metrics {group}:{name} with tags {dict(wanted)}")
        return self[found[0]]


class MetricsRegistry:
    """Sensors with their windows, and what is read from them."""

    def __init__(self, now: float, *, num_samples: int = 2, window_ms: float = 30_000) -> None:
        self._samples = num_samples
        self._window_ms = max(window_ms, 1.0)  # 0 is allowed by the option; a window still has to have a length
        self._window_start = now
        # Written by who makes the producer, then by the sender's thread (a Control's: by the thread that calls).
        self._sensors: list[Sensor | SharedSensor] = []
        self._measured: dict[MetricName, tuple[Sensor | SharedSensor, Kind]] = {}
        self._gauges: dict[MetricName, Callable[[], MetricValue]] = {}

    def sensor(self, now: float, names: Mapping[MetricName, Kind]) -> Sensor:
        """A new sensor that is read under ``names``."""
        sensor = Sensor(now)
        self.measure(sensor, names)
        return sensor

    def shared_sensor(self, now: float, names: Mapping[MetricName, Kind]) -> SharedSensor:
        """As ``sensor``, for a quantity that several threads record."""
        sensor = SharedSensor(now)
        self.measure(sensor, names)
        return sensor

    def measure(self, sensor: Sensor | SharedSensor, names: Mapping[MetricName, Kind]) -> None:
        """Reads ``sensor`` under further names, too."""
        if not any(known is sensor for known in self._sensors):
            self._sensors.append(sensor)
        for name, kind in names.items():
            self._measured[name] = (sensor, kind)

    def gauge(self, name: MetricName, read: Callable[[], MetricValue]) -> None:
        """A metric that is asked for when it is read; ``read`` runs on the reader's thread."""
        self._gauges[name] = read

    def roll(self, now: float) -> float:
        """Closes the window if it is over; when the one that is open then will be, in the same ms."""
        start = self._window_start
        windows = (now - start) // self._window_ms
        if windows >= 1:
            start += windows * self._window_ms
            for sensor in self._sensors:
                sensor.close_window(start, self._expired(now))
            # Last, so that what Ctrl-C left open is closed the next time.
            self._window_start = max(start, self._window_start)
        return start + self._window_ms

    def snapshot(self, now: float) -> MetricsSnapshot:
        """Every metric as of ``now``; a gauge that raises is reported as NaN rather than hiding all others."""
        self.roll(now)
        found = MetricsSnapshot()
        for name, (sensor, kind) in list(self._measured.items()):
            found[name] = self._read(sensor, kind, now)
        for name, read in list(self._gauges.items()):
            try:
                found[name] = read()
            except Exception:  # noqa: BLE001 - a gauge looks at live state of other threads
                found[name] = float("nan")
        return found

    def clear(self) -> None:
        """Forgets every metric (the producer was closed); sensors may still be recorded to."""
        self._sensors.clear()
        self._measured.clear()
        self._gauges.clear()

    def __len__(self) -> int:
        return len(self._measured) + len(self._gauges)

    def _expired(self, now: float) -> float:
        return now - self._samples * self._window_ms

    def _read(self, sensor: Sensor | SharedSensor, kind: Kind, now: float) -> MetricValue:
        if kind is Kind.TOTAL:
            return sensor.total
        if kind is Kind.COUNT_TOTAL:
            return sensor.count
        total, count, maximum, start = sensor.windowed(self._expired(now))
        if kind is Kind.AVG:
            return total / count if count else float("nan")
        if kind is Kind.MAX:
            return maximum if count else float("nan")
        elapsed_ms = self._elapsed(now - max(start, sensor.born))
        if kind is Kind.RATIO:
            return total / (elapsed_ms * 1e6)
        return (count if kind is Kind.COUNT_RATE else total) / (elapsed_ms / 1000)

    def _elapsed(self, since_first_ms: float) -> float:
        """The time a rate is taken over: as if the windows before the first had been there, empty.

        So one event right after the start is no burst of thousands a second.
        """
        missing = self._samples - 1 - since_first_ms // self._window_ms
        return max(since_first_ms + max(missing, 0) * self._window_ms, self._window_ms)
