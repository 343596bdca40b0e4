"""Metrics of producers, and their way out: ``prometheus`` and ``otel`` are the exporters, each with its extra.

``KafkaProducer.metrics()`` gives a ``MetricsSnapshot``, whose keys are ``MetricName``s.  ``readings`` gives what an
exporter of your own needs beside: sums and numbers behind averages, and histograms.
"""

from forebay._metrics.registry import Kind, MetricName, MetricsSnapshot, MetricValue, Reading
from forebay._metrics.sensor import BOUNDS_MS
from forebay.metrics._exported import readings

__all__ = ["BOUNDS_MS", "Kind", "MetricName", "MetricValue", "MetricsSnapshot", "Reading", "readings"]


def __dir__() -> list[str]:
    return sorted(__all__)
