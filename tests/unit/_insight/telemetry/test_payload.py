"""_insight.telemetry.payload: the bytes of a push, read back by OpenTelemetry's own classes."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from forebay._insight.telemetry import payload
from forebay._insight.telemetry.dialog import Subscription
from forebay._insight.telemetry.payload import PayloadMaker
from forebay._metrics.registry import Kind, MetricName, Reading
from forebay._protocol.get_telemetry_subscriptions import NO_INSTANCE

STARTED, NOW = 1_000, 5_000
CLIENT = ("client-id", "c")
ALL = Subscription(NO_INSTANCE, 1, 1_000, (), 0, False, ("",))


def reading(name: str, value: float | str, kind: Kind = Kind.TOTAL, **tags: str) -> Reading:
    labels = (CLIENT, *((key.replace("_", "-"), text) for key, text in tags.items()))
    return Reading(MetricName(name, "producer-metrics", "", labels, kind), value)


def given_as(readings: list[Reading]) -> Any:
    """As a registry gives them."""
    return lambda wanted: [each for each in readings if wanted(each.name)]


def read(data: bytes) -> dict[str, Any]:
    (resource,) = MetricsData.FromString(data).resource_metrics
    (scope,) = resource.scope_metrics
    assert scope.scope.name == "forebay"
    return {metric.name.removeprefix("org.apache.kafka.producer."): metric for metric in scope.metrics}


def test_kinds() -> None:
    maker = PayloadMaker(STARTED)
    given = [
        reading("a-total", 3),
        reading("b-total", 4, Kind.COUNT_TOTAL),
        reading("c-rate", 0.5, Kind.RATE),
        reading("d-max", 7, Kind.MAX),
        reading("e", 8, Kind.GAUGE),
        reading("f", 9, Kind.FACT),
        reading("g", "text", Kind.FACT),
        reading("h-avg", float("nan"), Kind.AVG),
        reading("i", 5, Kind.HISTOGRAM),
        reading("iotime-total", 5),
    ]
    found = read(maker.make(given_as(given), ALL, {}, NOW))
    assert {name: metric.WhichOneof("data") for name, metric in found.items()} == {
        "a.total": "sum",
        "b.total": "sum",
        "c.rate": "gauge",
        "d.max": "gauge",
        "e": "gauge",
        "f": "gauge",
    }
    (point,) = found["a.total"].sum.data_points
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (3, 10**9, 5 * 10**9)
    (point,) = found["c.rate"].gauge.data_points
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (0.5, 0, 5 * 10**9)


def test_values_of_one_metric_stand_together_with_their_tags() -> None:
    maker = PayloadMaker(STARTED)
    given = [reading("a-total", 1, topic="t"), reading("b", 2, Kind.GAUGE), reading("a-total", 3, node_id="node-1")]
    found = read(maker.make(given_as(given), ALL, {"transactional_id": "ours"}, NOW))
    assert list(found) == ["a.total", "b"]
    points = found["a.total"].sum.data_points
    tags = [{each.key: each.value.string_value for each in point.attributes} for point in points]
    assert tags == [{"topic": "t"}, {"node_id": "node-1"}] and [point.as_double for point in points] == [1, 3]


def test_labels_of_the_resource() -> None:
    data = MetricsData.FromString(PayloadMaker(STARTED).make(given_as([]), ALL, {"transactional_id": "ours"}, NOW))
    (label,) = data.resource_metrics[0].resource.attributes
    assert (label.key, label.value.string_value) == ("transactional_id", "ours")


def test_only_what_is_wanted() -> None:
    maker = PayloadMaker(STARTED)
    given = given_as([reading("a-total", 1), reading("b-total", 2)])
    for prefixes, found in (
        (("org.apache.kafka.producer.a",), {"a.total"}),
        (("com", "org.apache.kafka.producer.b"), {"b.total"}),
        (("com",), set()),
    ):
        assert set(read(maker.make(given, ALL._replace(prefixes=prefixes), {}, NOW))) == found


def totals(data: bytes) -> tuple[float, int]:
    (point,) = read(data)["a.total"].sum.data_points
    return point.as_double, point.start_time_unix_nano // 10**6


def test_differences_to_what_was_taken() -> None:
    maker, delta = PayloadMaker(STARTED), ALL._replace(delta=True)
    assert totals(maker.make(given_as([reading("a-total", 5)]), delta, {}, 2_000)) == (5, STARTED)
    maker.taken()
    assert totals(maker.make(given_as([reading("a-total", 7)]), delta, {}, 3_000)) == (2, 2_000)
    maker.refused()
    assert totals(maker.make(given_as([reading("a-total", 8)]), delta, {}, 4_000)) == (3, 2_000)
    maker.taken()
    maker.refused()  # nothing is under way
    assert totals(maker.make(given_as([reading("a-total", 8)]), delta, {}, 5_000)) == (0, 4_000)


def test_from_values_since_the_start_to_differences() -> None:
    maker = PayloadMaker(STARTED)
    for value in (5, 6):
        assert totals(maker.make(given_as([reading("a-total", value)]), ALL, {}, 2_000)) == (value, STARTED)
        maker.taken()
    assert totals(maker.make(given_as([reading("a-total", 7)]), ALL._replace(delta=True), {}, 3_000)) == (1, 2_000)


def test_what_is_new_begins_with_the_producer() -> None:
    maker, delta = PayloadMaker(STARTED), ALL._replace(delta=True)
    maker.make(given_as([reading("b-total", 5)]), delta, {}, 2_000)
    maker.taken()
    assert totals(maker.make(given_as([reading("a-total", 7)]), delta, {}, 3_000)) == (7, STARTED)


def test_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "MOST_VALUES", 3)
    maker = PayloadMaker(STARTED)
    given = [reading("a-total", 1, topic=f"t{number}") for number in range(5)]
    assert len(read(maker.make(given_as(given), ALL, {}, NOW))["a.total"].sum.data_points) == 3
    assert maker.is_cut
    maker.make(given_as(given[:3]), ALL, {}, NOW)
    assert not maker.is_cut
