"""_metrics.names: what metrics are called elsewhere; test_producer.py reads every row of the table."""

from __future__ import annotations

import pytest

from forebay._metrics import names
from forebay._metrics.names import telemetry_name
from forebay._metrics.registry import MetricName

ROWS = [
    (group, row.name)
    for group, rows in (
        (names.PRODUCER, names.PRODUCER_ROWS),
        (names.TOPIC, names.TOPIC_ROWS),
        (names.NODE, names.NODE_ROWS),
    )
    for row in rows
]


@pytest.mark.parametrize(
    ("group", "name", "expected"),
    [
        (names.PRODUCER, "connection-creation-rate", "org.apache.kafka.producer.connection.creation.rate"),
        (names.TOPIC, "record-send-total", "org.apache.kafka.producer.topic.record.send.total"),
        (names.NODE, "request-latency-avg", "org.apache.kafka.producer.node.request.latency.avg"),
        (names.COUNT, "count", "org.apache.kafka.kafka.count.count"),
        (names.APP_INFO, "start-time-ms", "org.apache.kafka.app.info.start.time.ms"),
    ],
)
def test_names_for_brokers(group: str, name: str, expected: str) -> None:
    """KIP-714, "Metric naming and format"; Java leaves the word metrics out wherever it follows another."""
    assert telemetry_name(MetricName(name, group, "")) == expected


def test_no_two_metrics_have_one_name_for_brokers() -> None:
    found = [telemetry_name(MetricName(name, group, "")) for group, name in ROWS]
    assert len(found) == len(set(found))
