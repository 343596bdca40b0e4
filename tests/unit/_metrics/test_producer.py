"""_metrics.producer and .names: every Java metric is there, each sensor is read."""

from __future__ import annotations

import pytest

from forebay._metrics import names
from forebay._metrics.producer import ProducerMetrics, sensor_fields
from forebay._metrics.registry import Kind
from forebay._metrics.sensor import SharedSensor
from forebay.testing.clock import ManualClock

PRODUCER = """
batch-size-avg batch-size-max batch-split-rate batch-split-total compression-rate-avg record-queue-time-avg
record-queue-time-max request-latency-avg request-latency-max produce-throttle-time-avg produce-throttle-time-max
record-send-rate record-send-total records-per-request-avg record-retry-rate record-retry-total record-error-rate
record-error-total record-size-avg record-size-max requests-in-flight metadata-age flush-time-ns-total
txn-init-time-ns-total txn-begin-time-ns-total txn-send-offsets-time-ns-total txn-commit-time-ns-total
txn-abort-time-ns-total metadata-wait-time-ns-total waiting-threads buffer-total-bytes buffer-available-bytes
bufferpool-wait-ratio bufferpool-wait-time-total bufferpool-wait-time-ns-total buffer-exhausted-rate
buffer-exhausted-total connection-close-rate connection-close-total connection-creation-rate
connection-creation-total connection-count successful-authentication-rate successful-authentication-total
successful-reauthentication-rate successful-reauthentication-total successful-authentication-no-reauth-total
failed-authentication-rate failed-authentication-total failed-reauthentication-rate failed-reauthentication-total
reauthentication-latency-avg reauthentication-latency-max network-io-rate network-io-total outgoing-byte-rate
outgoing-byte-total incoming-byte-rate incoming-byte-total request-rate request-total request-size-avg
request-size-max response-rate response-total select-rate select-total io-wait-time-ns-avg io-wait-ratio
io-waittime-total io-wait-time-ns-total io-time-ns-avg io-ratio iotime-total io-time-ns-total
"""
TOPIC = """
record-send-rate record-send-total byte-rate byte-total compression-rate record-retry-rate record-retry-total
record-error-rate record-error-total
"""
NODE = """
request-rate request-total request-size-avg request-size-max outgoing-byte-rate outgoing-byte-total response-rate
response-total incoming-byte-rate incoming-byte-total request-latency-avg request-latency-max
"""


def make() -> tuple[ManualClock, ProducerMetrics]:
    clock = ManualClock()
    metrics = ProducerMetrics("me", clock.now())
    for gauge in names.GAUGES:
        metrics.gauge(gauge, lambda: 1)
    metrics.app_info("1.2.3", "abc", 17)
    metrics.topic("t", clock.now())
    metrics.node(-1, clock.now())
    return clock, metrics


def test_all_names_of_section_19() -> None:
    clock, metrics = make()
    by_group: dict[str, set[str]] = {}
    for name in metrics.snapshot(clock.now()):
        by_group.setdefault(name.group, set()).add(name.name)
        assert ("client-id", "me") in name.tags
        assert name.description
    assert by_group == {
        "producer-metrics": set(PRODUCER.split()),
        "producer-topic-metrics": set(TOPIC.split()),
        "producer-node-metrics": set(NODE.split()),
        "app-info": {"version", "commit-id", "start-time-ms"},
        "kafka-metrics-count": {"count"},
    }


def test_fields_and_table_agree() -> None:
    """No sensor that nobody reads, no row without a sensor."""
    assert sensor_fields() == {
        "ProducerMetrics": {row.sensor for row in names.PRODUCER_ROWS},
        "TopicSensors": {row.sensor for row in names.TOPIC_ROWS},
        "NodeSensors": {row.sensor for row in names.NODE_ROWS},
    }


def test_what_application_threads_record_is_shared() -> None:
    _clock, metrics = make()
    declared = {field for field, kind in ProducerMetrics.__annotations__.items() if kind == "SharedSensor"}
    made = {row.sensor for row in names.PRODUCER_ROWS if isinstance(getattr(metrics, row.sensor), SharedSensor)}
    assert declared == made == names.SHARED


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("flush_ns", "flush-time-ns-total"),
        ("txn_init_ns", "txn-init-time-ns-total"),
        ("txn_begin_ns", "txn-begin-time-ns-total"),
        ("txn_commit_ns", "txn-commit-time-ns-total"),
        ("txn_abort_ns", "txn-abort-time-ns-total"),
        ("txn_send_offsets_ns", "txn-send-offsets-time-ns-total"),
        ("metadata_wait_ns", "metadata-wait-time-ns-total"),
    ],
)
def test_times(field: str, name: str) -> None:
    """I KafkaProducerMetricsTest: records 123, reads 123.0, gone after close."""
    clock, metrics = make()
    getattr(metrics, field).record(123)
    assert metrics.snapshot(clock.now()).value(name) == 123.0
    metrics.close()
    assert metrics.snapshot(clock.now()) == {}


def test_one_sensor_several_metrics() -> None:
    clock, metrics = make()
    metrics.records_sent.record(10)
    metrics.records_sent.record(20)
    metrics.requests.record(500)
    metrics.record_size.record_many(300, 30, 25)
    clock.advance(30_000)
    snapshot = metrics.snapshot(clock.now())
    assert snapshot.value("record-send-total") == 30
    assert snapshot.value("record-send-rate") == 1.0
    assert snapshot.value("records-per-request-avg") == 15
    assert (snapshot.value("request-total"), snapshot.value("request-size-max")) == (1, 500)
    assert (snapshot.value("record-size-avg"), snapshot.value("record-size-max")) == (10, 25)


def test_names_know_their_kind_and_unit() -> None:
    clock, metrics = make()
    found = {(name.group, name.name): name for name in metrics.snapshot(clock.now())}
    endings = {
        Kind.TOTAL: ("-total",),
        Kind.COUNT_TOTAL: ("-total",),
        Kind.RATE: ("-rate",),
        Kind.COUNT_RATE: ("-rate",),
        Kind.AVG: ("-avg", "compression-rate"),
        Kind.MAX: ("-max",),
        Kind.RATIO: ("-ratio",),
    }
    words: dict[str, tuple[str, ...]] = {
        "ms": ("Milliseconds",),
        "ns": ("Nanoseconds", "Old name"),
        "bytes": ("Bytes", "Buffer"),
        "s": ("Seconds",),
    }
    for name in found.values():
        assert name.name.endswith(endings.get(name.kind, ("",))), name
        assert name.description.startswith(words.get(name.unit, ("",))), name
        assert name.unit or not name.description.startswith(("Milli", "Nano", "Bytes")), name
    assert found[names.PRODUCER, "waiting-threads"].kind is Kind.GAUGE
    assert found[names.APP_INFO, "version"].kind is Kind.FACT


def test_a_topic_has_a_histogram() -> None:
    clock, metrics = make()
    metrics.topic("t", clock.now()).ack_time.record_even(1, 1, 7)
    (reading,) = [each for each in metrics.readings(clock.now()) if each.name.kind is Kind.HISTOGRAM]
    assert (reading.name.name, reading.number) == ("record-ack-time", 7)
    assert dict(reading.name.tags)["topic"] == "t"


def test_topics_and_nodes_are_made_once() -> None:
    clock, metrics = make()
    assert metrics.topic("t", clock.now()) is metrics.topic("t", clock.now())
    assert metrics.node(1, clock.now()) is not metrics.node(-1, clock.now())
    metrics.topic("t", clock.now()).bytes.record(60)
    metrics.node(-1, clock.now()).latency.record(5)
    snapshot = metrics.snapshot(clock.now())
    assert snapshot.value("byte-total", "producer-topic-metrics", topic="t") == 60
    assert snapshot.value("request-latency-max", "producer-node-metrics", node_id="node--1") == 5
    assert snapshot.value("version", "app-info") == "1.2.3"
    assert snapshot.value("count", "kafka-metrics-count") == len(snapshot)


def test_unknown_gauge() -> None:
    with pytest.raises(KeyError, match="no-such"):
        make()[1].gauge("no-such", lambda: 1)


def test_windows_follow_the_options() -> None:
    clock = ManualClock()
    metrics = ProducerMetrics("me", clock.now(), num_samples=1, window_ms=1000)
    metrics.batch_size.record(7)
    clock.advance(1000)
    metrics.roll(clock.now())
    assert str(metrics.snapshot(clock.now()).value("batch-size-max")) == "nan"
