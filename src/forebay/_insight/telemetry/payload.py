"""A producer's metrics as OpenTelemetry's MetricsData, as brokers take them (extra ``telemetry``).

Names and kinds are the Java client's: totals are sums, everything else is a gauge.  Differently from Java all metrics
share one resource, and the values of one metric stand together, as OpenTelemetry means it.  What has no value yet, such
as the mean of nothing, is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from forebay._runtime.extras import of_extra

with of_extra(__name__, "telemetry"):
    from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from forebay._insight.telemetry.dialog import Subscription
from forebay._metrics.names import OLD_NAMES, telemetry_name
from forebay._metrics.registry import Kind, MetricName, Reading
from forebay._records.compression import CompressionType, Compressor, compressor
from forebay._runtime.version import VERSION
from forebay.errors import ConfigError

MOST_VALUES = 10_000
"""In one push: the sender's thread makes it, and sends nothing meanwhile."""
SUMS = frozenset({Kind.TOTAL, Kind.COUNT_TOTAL})
NS_PER_MS = 1_000_000
ZSTD_LEVEL = 1

Read = Callable[[Callable[[MetricName], bool]], Iterable[Reading]]


def compressors() -> Iterator[tuple[int, Compressor]]:
    """Those whose packages are installed, by number."""
    for kind in CompressionType:
        try:
            yield int(kind), compressor(kind, ZSTD_LEVEL if kind is CompressionType.ZSTD else None)
        except ConfigError:
            pass


COMPRESSORS = dict(compressors())
"""Made with the module, which is imported apart from the sender's thread: a compressor imports its package."""


class PayloadMaker:
    """Makes one push after the other, and knows what the cluster was told of each total.

    Args:
        started_ms: when the producer began to count, as wall time.
    """

    def __init__(self, started_ms: int) -> None:
        self.compressors: Mapping[int, Compressor] = COMPRESSORS
        self._started_ns = started_ms * NS_PER_MS
        self._told: dict[MetricName, tuple[float, int]] = {}
        """By total: its value in the latest push that was taken, and when (Unix time in ns)."""
        self._telling: dict[MetricName, tuple[float, int]] = {}
        """The same of the push that is under way."""
        self._names: dict[tuple[str, str], str] = {}
        """By group and name what telemetry calls a metric; empty if the cluster does not want it."""
        self._wanted: Subscription | None = None
        self.is_cut = False
        """Whether the last payload had no room for all values."""

    def make(self, read: Read, subscription: Subscription, labels: Mapping[str, str], wall_ms: int) -> bytes:
        """The payload of one push, not compressed.

        Args:
            read: gives the readings of the metrics that its argument wants.
            labels: attributes of the resource, as KIP-714 has them.
            wall_ms: the time of the readings.
        """
        if subscription is not self._wanted:
            self._wanted, self._names = subscription, {}
        self._telling = {}
        now_ns = wall_ms * NS_PER_MS
        data = MetricsData()
        resource = data.resource_metrics.add()
        for key, value in labels.items():
            resource.resource.attributes.add(key=key).value.string_value = value
        scope = resource.scope_metrics.add()
        scope.scope.name, scope.scope.version = "forebay", VERSION
        points: dict[str, Callable[..., Any]] = {}
        values = 0
        self.is_cut = False
        for reading in read(self._is_wanted):
            if isinstance(reading.value, str) or math.isnan(reading.value):
                continue
            if values == MOST_VALUES:
                self.is_cut = True
                break
            values += 1
            name = self._names[reading.name.group, reading.name.name]
            add = points.get(name)
            if add is None:
                add = points[name] = _new_metric(scope.metrics.add(name=name), reading.name.kind, subscription.delta)
            self._add(add, reading, subscription.delta, now_ns)
        return bytes(data.SerializeToString())

    def taken(self) -> None:
        """The push under way was taken, or may have been: the next one tells what came after it."""
        self._told.update(self._telling)
        self._telling = {}

    def refused(self) -> None:
        """The push under way was refused: the next one tells what it told, too."""
        self._telling = {}

    def _add(self, add: Callable[..., Any], reading: Reading, delta: bool, now_ns: int) -> None:
        value = float(reading.value)
        if reading.name.kind in SUMS:
            self._telling[reading.name] = (value, now_ns)
            before, since = self._told.get(reading.name, (0.0, self._started_ns)) if delta else (0.0, self._started_ns)
            point = add(as_double=value - before, start_time_unix_nano=since, time_unix_nano=now_ns)
        else:
            point = add(as_double=value, time_unix_nano=now_ns)
        for key, text in reading.name.tags:
            # The broker knows the client's id.
            if key != "client-id":
                point.attributes.add(key=key.replace("-", "_")).value.string_value = text

    def _is_wanted(self, name: MetricName) -> bool:
        key = (name.group, name.name)
        found = self._names.get(key)
        if found is None:
            found = telemetry_name(name)
            # The Java client has no histogram, and tells brokers newer names alone.
            hidden = name.kind is Kind.HISTOGRAM or name.name in OLD_NAMES
            if hidden or self._wanted is None or not self._wanted.wants(found):
                found = ""
            self._names[key] = found
        return found != ""


def _new_metric(metric: Any, kind: Kind, delta: bool) -> Callable[..., Any]:
    """What adds a value to the metric."""
    if kind not in SUMS:
        return metric.gauge.data_points.add  # type: ignore[no-any-return]
    metric.sum.is_monotonic = True
    metric.sum.aggregation_temporality = (
        AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
        if delta
        else AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    )
    return metric.sum.data_points.add  # type: ignore[no-any-return]
