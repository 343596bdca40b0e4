"""A collector for ``prometheus_client`` (extra ``prometheus``).

``serve(9100)`` is enough for a process without metrics of its own.  Others register a ``ProducerCollector`` where their
own metrics are.  Nothing is counted for it: it reads the producers' own sensors when Prometheus asks.

A ``SparkCollector`` reads the counters that Spark's sink keeps in the file of ``metrics.path``.
"""

from __future__ import annotations

import json
import logging
import math
import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIServer

from forebay._runtime.extras import of_extra

with of_extra(__name__, "prometheus"):
    from prometheus_client import REGISTRY, CollectorRegistry, start_http_server
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        InfoMetricFamily,
        Metric,
        SummaryMetricFamily,
    )
    from prometheus_client.registry import Collector

from forebay._metrics import names
from forebay._metrics.registry import Kind, MetricName, Reading
from forebay._metrics.sensor import BOUNDS_MS
from forebay.metrics._exported import Watched, in_base_unit, known_names, prometheus_name, readings, tags_of

__all__ = ["ProducerCollector", "SparkCollector", "serve"]


def __dir__() -> list[str]:
    return sorted(__all__)


logger: logging.Logger = logging.getLogger("forebay.metrics")

FAMILIES: dict[Kind, Any] = {
    Kind.TOTAL: CounterMetricFamily,
    Kind.COUNT_TOTAL: CounterMetricFamily,
    Kind.AVG: SummaryMetricFamily,
    Kind.MAX: GaugeMetricFamily,
    Kind.GAUGE: GaugeMetricFamily,
    Kind.HISTOGRAM: HistogramMetricFamily,
}
LABELS: dict[str, tuple[str, ...]] = {
    names.PRODUCER: ("client_id",),
    names.TOPIC: ("client_id", "topic"),
    names.NODE: ("client_id", "node"),
}
BOUNDS = [*(repr(bound / 1000) for bound in BOUNDS_MS), "+Inf"]
"""Of the histogram's buckets, in seconds."""
_lock = threading.RLock()
_served: weakref.WeakSet[CollectorRegistry] = weakref.WeakSet()
"""Registries that ``serve`` has given a collector; under ``_lock``."""


class ProducerCollector(Collector):
    """The metrics of the process's producers, for one registry.  A producer that is closed disappears.

    Families are named ``forebay_...``, ``forebay_topic_...`` and ``forebay_node_...``; ``docs/metrics.md`` lists them.
    The label ``client_id`` is the producer's client id.  If several open producers have the same one, the others'
    labels end in ``#2``, ``#3`` and so on.

    Args:
        producers: the producers to read, which this does not keep alive; None: all of the process, also later ones.

    Raises:
        TypeError: one is no KafkaProducer or AsyncKafkaProducer.
    """

    def __init__(self, producers: Iterable[Any] | None = None) -> None:
        self._watched = Watched(producers)

    def describe(self) -> Iterator[Metric]:
        """The families without values; a registry looks here for names that clash."""
        yield from _all_families().values()

    def collect(self) -> Iterator[Metric]:
        """The families that have values now."""
        families = _all_families()
        for client_id, producer in self._watched.producers():
            for reading in readings(producer):
                if reading.name.group == names.APP_INFO:
                    _add_fact(families, client_id, reading)
                elif family := families.get(prometheus_name(reading.name)):
                    _add(family, [client_id, *tags_of(reading.name).values()], reading)
        yield from (family for family in families.values() if family.samples)


SPARK_COUNTERS = {
    "commits": "Writes, or micro-batches of a stream, that were committed.",
    "tasks": "Tasks that wrote.",
    "transactions": "Transactions of exactly-once writes that were committed.",
    "skipped_tasks": "Tasks of repeated writes that had nothing to write any more.",
    "rows": "Rows that were written.",
    "acknowledged": "Records that brokers have acknowledged.",
    "batches": "Record batches that were sent.",
    "bytes_sent": "Bytes of record batches as the broker got them.",
    "bytes_raw": "Bytes of record batches before compression.",
}
"""Keys of the file of ``metrics.path``, each a family ``forebay_spark_..._total``."""


class SparkCollector(Collector):
    """The counters of Spark jobs, from the files of the sink's option ``metrics.path``, for one registry.

    Families are ``forebay_spark_rows_total`` and its like, ``forebay_spark_partition_records_total`` with the labels
    ``topic`` and ``partition``, and ``forebay_spark_finished_time_seconds`` (Unix time of the last acknowledgement).
    Each has the label ``job``.  The files are read at each scrape.  A job has no values as long as it has no file.

    Args:
        paths: files on this host, which is the drivers', by the name of the job.
    """

    def __init__(self, paths: Mapping[str, str | os.PathLike[str]]) -> None:
        self._paths = {job: os.fspath(path) for job, path in paths.items()}

    def describe(self) -> Iterator[Metric]:
        """The families without values."""
        yield from _spark_families().values()

    def collect(self) -> Iterator[Metric]:
        """The families that have values now.

        Raises:
            ValueError: a file holds no counters of the sink.
        """
        families = _spark_families()
        for job, path in self._paths.items():
            try:
                found = json.loads(Path(path).read_bytes())
            except FileNotFoundError:
                continue
            if not isinstance(found, dict) or found.get("format") != 1:
                raise ValueError(f"{path!r} holds no counters of Spark's sink (format 1)")
            _add_counters(families, job, found)
        yield from (family for family in families.values() if family.samples)


def _spark_families() -> dict[str, Any]:
    families: dict[str, Any] = {
        key: CounterMetricFamily(f"forebay_spark_{key}", text, labels=["job"]) for key, text in SPARK_COUNTERS.items()
    }
    families["partitions"] = CounterMetricFamily(
        "forebay_spark_partition_records", "Records by partition.", labels=["job", "topic", "partition"]
    )
    families["finished_ms"] = GaugeMetricFamily(
        "forebay_spark_finished_time_seconds", "When the last record was acknowledged, Unix time.", labels=["job"]
    )
    return families


def _add_counters(families: dict[str, Any], job: str, found: Mapping[str, Any]) -> None:
    for key in SPARK_COUNTERS:
        families[key].add_metric([job], float(found.get(key, 0)))
    for name, count in found.get("partitions", {}).items():
        topic, _, partition = name.rpartition("-")
        families["partitions"].add_metric([job, topic, partition], float(count))
    if found.get("finished_ms") is not None:
        families["finished_ms"].add_metric([job], float(found["finished_ms"]) / 1000)


def serve(port: int, address: str = "0.0.0.0", registry: CollectorRegistry = REGISTRY) -> WSGIServer | None:
    """Registers a collector, and serves the registry by HTTP on a thread of its own.

    Called again it serves the same registry on another port, with the same collector.  A metric must not keep a service
    from its work: where the port is taken, a warning says so, and no more happens.

    Args:
        port: 0 for a free one.

    Returns:
        The server, whose ``shutdown`` ends it and whose ``server_port`` is the port; None where there is none.

    Raises:
        ValueError: the registry has a ProducerCollector of your own, or other metrics with the same names.
    """
    with _lock:
        try:
            registry.register(ProducerCollector())
        except ValueError:
            if registry not in _served:
                text = "serve: the registry has metrics named forebay_... already, as of a ProducerCollector that was"
                raise ValueError(f"{text} registered; serve it with prometheus_client.start_http_server") from None
        else:
            _served.add(registry)
    try:
        return start_http_server(port, address, registry)[0]
    except OSError as error:
        logger.warning("Metrics are not served: port %d of %s cannot be had: %s", port, address, error)
        return None


def _all_families() -> dict[str, Any]:
    families: dict[str, Any] = {}
    for name in known_names():
        _add_family(families, name)
    row = names.TOPIC_HISTOGRAM
    _add_family(families, MetricName(row.name, names.TOPIC, row.description, (), row.kind, row.unit))
    families["forebay_producer"] = InfoMetricFamily("forebay_producer", "The version of forebay.", labels=["client_id"])
    families["forebay_start_time_seconds"] = GaugeMetricFamily(
        "forebay_start_time_seconds", "When the producer was made, Unix time.", labels=["client_id"]
    )
    return families


def _add_family(families: dict[str, Any], name: MetricName) -> None:
    family = prometheus_name(name)
    if family:
        families[family] = FAMILIES[name.kind](family, _in_words(name), labels=LABELS[name.group])


def _in_words(name: MetricName) -> str:
    """The description without the unit and the mean, which the family's own name and type say."""
    text = name.description.removesuffix(", mean.").removesuffix(", since the start.").removesuffix(".")
    text = text.replace("Milliseconds", "Seconds").replace("Nanoseconds", "Seconds")
    return f"{text} (Java's {name.name})."


def _add(family: Any, labels: list[str], reading: Reading) -> None:
    name = reading.name
    if name.kind is Kind.AVG:
        family.add_metric(labels, reading.number, in_base_unit(name, reading.total))
    elif name.kind is Kind.HISTOGRAM:
        so_far = 0
        buckets = []
        for bound, count in zip(BOUNDS, reading.buckets, strict=True):
            so_far += count
            buckets.append((bound, so_far))
        family.add_metric(labels, buckets, in_base_unit(name, reading.total))
    elif not math.isnan(float(reading.value)):  # a maximum of nothing
        family.add_metric(labels, in_base_unit(name, float(reading.value)))


def _add_fact(families: dict[str, Any], client_id: str, reading: Reading) -> None:
    if reading.name.name == "version":
        families["forebay_producer"].add_metric([client_id], {"version": str(reading.value)})
    elif reading.name.name == "start-time-ms":
        families["forebay_start_time_seconds"].add_metric([client_id], float(reading.value) / 1000)
