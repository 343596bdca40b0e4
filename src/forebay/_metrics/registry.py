"""MetricsRegistry: keeps the sensors and their windows, and makes a snapshot of all metrics by their Java names.

Rates, averages and maxima are over sliding windows (``metrics.num.samples`` of ``metrics.sample.window.ms``).  Totals
are since the start.  Windows roll in the sender's turns and before each reading.  Any thread may read.  There is no
lock, because a signal handler may read while it interrupts a reader.  One thread adds names, readers copy them in one
step, and a sensor ignores a second close of the same window.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from forebay._metrics.sensor import Histogram, Sensor, SharedSensor

MetricValue = float | int | str
AnySensor = Sensor | SharedSensor


class Kind(enum.Enum):
    """What a metric is, and how it is read from its sensor."""

    TOTAL = "counter: sum of the values since the start"
    COUNT_TOTAL = "counter: number of events since the start"
    RATE = "rate: sum of the values a second"
    COUNT_RATE = "rate: number of events a second"
    AVG = "average: mean of the values"
    MAX = "maximum: largest value"
    RATIO = "ratio: share of the time, from values in nanoseconds"
    GAUGE = "gauge: the value as it is now"
    FACT = "fact: a value that does not change"
    HISTOGRAM = "histogram: how many values lie in each bucket, since the start"


class MetricName(NamedTuple):
    """A metric's identity: name and group as in the Java client; the tags name the client, topic or node.

    ``unit`` is ``ms``, ``ns``, ``s``, ``bytes`` or empty.  Of a rate it is the unit of what is counted.
    """

    name: str
    group: str
    description: str
    tags: tuple[tuple[str, str], ...] = ()
    kind: Kind = Kind.GAUGE
    unit: str = ""

    def __str__(self) -> str:
        tags = ",".join(f"{key}={value}" for key, value in self.tags)
        return f"{self.group}:{self.name}" + (f"[{tags}]" if tags else "")


class Reading(NamedTuple):
    """What an exporter reads of one metric.

    ``total`` and ``number`` are the sum and the number of the values since the start; of a gauge they are 0.  Of a
    histogram ``buckets`` has the number of values in each bucket (see ``BOUNDS_MS``), and ``value`` is ``number``.
    """

    name: MetricName
    value: MetricValue
    total: float = 0.0
    number: int = 0
    buckets: tuple[int, ...] = ()


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


Measured = Sequence[tuple["MetricName", AnySensor]]
"""Metrics, each with the sensor that it is read from."""


class _Group:
    """Metrics whose names are made when they are first read: a process may have many producers that nobody reads."""

    __slots__ = ("_made", "_make", "size")

    def __init__(self, size: int, make: Callable[[], Measured]) -> None:
        self.size = size
        self._make = make
        self._made: Measured | None = None

    def measured(self) -> Measured:
        """Any thread; two at the same time make equal names."""
        made = self._made
        if made is None:
            made = self._made = self._make()
        return made


class MetricsRegistry:
    """Sensors with their windows, and what is read from them."""

    def __init__(self, now: float, *, num_samples: int = 2, window_ms: float = 30_000) -> None:
        self._samples = num_samples
        self._window_ms = max(window_ms, 1.0)  # 0 is allowed by the option; a window still has to have a length
        self._window_start = now
        # Written by the thread that makes the producer, later by the sender's thread (an AdminClient's: by callers).
        self._sensors: list[AnySensor] = []
        self._groups: list[_Group] = []
        self._gauges: dict[MetricName, Callable[[], MetricValue]] = {}
        self._histograms: dict[MetricName, Histogram] = {}

    def add(self, sensors: Iterable[AnySensor], size: int, measured: Callable[[], Measured]) -> None:
        """Takes new sensors, and the ``size`` metrics that are read from them.

        Args:
            measured: called once by a reader, on its thread; gives the metrics.
        """
        self._sensors.extend(sensors)
        self._groups.append(_Group(size, measured))

    def histogram(self, name: MetricName) -> Histogram:
        """A new histogram.  ``readings`` has it, ``snapshot`` has not: it is no single value."""
        self._histograms[name] = histogram = Histogram()
        return histogram

    def gauge(self, name: MetricName, read: Callable[[], MetricValue]) -> None:
        """A metric whose value ``read`` returns, on the reader's thread."""
        self._gauges[name] = read

    def roll(self, now: float) -> float:
        """Closes the window if it is over; returns the end of the window that is open then, in monotonic ms."""
        start = self._window_start
        windows = (now - start) // self._window_ms
        if windows >= 1:
            start += windows * self._window_ms
            for sensor in self._sensors:
                sensor.close_window(start, self._expired(now))
            # Last, so that windows that Ctrl-C left open are closed the next time.
            self._window_start = max(start, self._window_start)
        return start + self._window_ms

    def snapshot(self, now: float) -> MetricsSnapshot:
        """Every metric as of ``now``; a gauge that raises is reported as NaN, and hides no other metric."""
        return MetricsSnapshot(
            (reading.name, reading.value) for reading in self.readings(now) if reading.name.kind is not Kind.HISTOGRAM
        )

    def readings(self, now: float, wanted: Callable[[MetricName], bool] = bool) -> Iterator[Reading]:
        """As ``snapshot``, with what exporters make rates and averages of, and with histograms.

        Args:
            wanted: says which metrics to read; without it all.
        """
        self.roll(now)
        for group in list(self._groups):
            for name, sensor in group.measured():
                if wanted(name):
                    yield Reading(name, self._read(sensor, name.kind, now), sensor.total, sensor.count)
        for name, read in list(self._gauges.items()):
            if not wanted(name):
                continue
            try:
                value = read()
            except Exception:  # noqa: BLE001 - a gauge reads live state of other threads
                value = float("nan")
            yield Reading(name, value)
        for name, histogram in list(self._histograms.items()):
            if not wanted(name):
                continue
            buckets = histogram.buckets()
            yield Reading(name, sum(buckets), histogram.total, sum(buckets), buckets)

    def clear(self) -> None:
        """Forgets every metric (the producer was closed); sensors may still be recorded to."""
        self._sensors.clear()
        self._groups.clear()
        self._gauges.clear()
        self._histograms.clear()

    def __len__(self) -> int:
        return sum(group.size for group in list(self._groups)) + len(self._gauges)

    def _expired(self, now: float) -> float:
        return now - self._samples * self._window_ms

    def _read(self, sensor: AnySensor, kind: Kind, now: float) -> MetricValue:
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
        """The time that a rate is over; counts the windows before the start as empty.

        So one event right after the start is no burst of thousands a second.
        """
        missing = self._samples - 1 - since_first_ms // self._window_ms
        return max(since_first_ms + max(missing, 0) * self._window_ms, self._window_ms)
