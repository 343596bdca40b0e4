"""metrics.otel: what the SDK of OpenTelemetry collects of a producer, and the spans of its records."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.propagate import get_global_textmap, set_global_textmap
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from forebay.errors import RecordTooLargeError
from forebay.metrics.otel import ProducerMeters, TracingInterceptor
from forebay.model import ProducerRecord
from tests.fakes.world import World
from tests.unit.metrics.test_exported import Known


class Collected:
    """A meter provider with a reader, and what it reads, by instrument and attributes."""

    def __init__(self, *producers: Any) -> None:
        self.reader = InMemoryMetricReader()
        ProducerMeters(MeterProvider([self.reader], shutdown_on_exit=False), producers)

    def points(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        scopes = [scope for each in data.resource_metrics for scope in each.scope_metrics] if data is not None else []
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}


def test_the_conventions_metrics() -> None:
    world = Known(client_id="me", topics={"test": 1, "bad": 1}, linger_ms=30)
    collected = Collected(world.producer)
    world.cluster.fail("bad", 0, 29)
    for _ in range(3):
        world.send(b"v")
    world.send(b"v", topic="bad")
    world.let_pass(40)
    world.settle()
    points = collected.points()
    sent = {(point.attributes["messaging.destination.name"], point.attributes.get("error.type")): point
            for point in points["messaging.client.sent.messages"]}  # fmt: skip
    assert {key: point.value for key, point in sent.items()} == {
        ("test", None): 3,
        ("bad", None): 0,
        ("bad", "_OTHER"): 1,
    }
    assert sent["test", None].attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.client.id": "me",
        "messaging.destination.name": "test",
    }
    (durations,) = points["messaging.client.operation.duration"]
    assert (durations.count, durations.attributes["messaging.destination.name"]) == (3, "test")
    at = durations.bucket_counts.index(3)
    assert (durations.explicit_bounds[at - 1], durations.explicit_bounds[at]) == (0.016, 0.032)


def test_values_go_into_the_histogram_once_and_a_thousand_at_most() -> None:
    world = Known()
    collected = Collected(world.producer)
    topic = world.parts.metrics.topic("test", world.now)
    topic.ack_time.record_even(3, 3, 10)
    for expected in (10, 10):
        (durations,) = collected.points()["messaging.client.operation.duration"]
        assert durations.count == expected
    topic.ack_time.record_even(3, 3, 300_000)
    topic.ack_time.record_even(30, 30, 100_000)
    (durations,) = collected.points()["messaging.client.operation.duration"]
    assert [count for count in durations.bucket_counts if count] == [10 + 750, 250]
    (sent,) = collected.points()["messaging.client.sent.messages"]
    assert sent.value == 400_010


def test_a_producer_that_follows_another_under_its_name_counts_from_0() -> None:
    reader = InMemoryMetricReader()
    meters = ProducerMeters(MeterProvider([reader], shutdown_on_exit=False))
    first = Known(client_id="restarted")
    first.parts.metrics.topic("test", first.now).ack_time.record_even(3, 3, 10)
    counts = []
    for _ in range(2):
        data = reader.get_metrics_data()
        assert data is not None
        metrics = data.resource_metrics[0].scope_metrics[0].metrics
        (durations,) = [each for each in metrics if each.name == "messaging.client.operation.duration"]
        points = [point for point in durations.data.data_points if isinstance(point, HistogramDataPoint)]
        # Producers of other tests may not have been collected yet.
        counts += [point.count for point in points if (point.attributes or {})["messaging.client.id"] == "restarted"]
        first.end()
        second = Known(client_id="restarted")
        second.parts.metrics.topic("test", second.now).ack_time.record_even(3, 3, 4)
    assert counts == [10, 14]
    assert set(meters._measured) >= {first.producer}


def test_many_topics_share_what_goes_into_the_histogram() -> None:
    world = Known()
    collected = Collected(world.producer)
    for number in range(100):
        world.parts.metrics.topic(f"t{number}", world.now).ack_time.record_even(3, 3, 5_000)
    durations = collected.points()["messaging.client.operation.duration"]
    assert [point.count for point in durations] == [100] * 100


def test_kafka_s_own_metrics_in_base_units() -> None:
    world = Known(client_id="me")
    world.send(b"v")
    world.settle()
    points = Collected(world.producer).points()
    snapshot = world.producer.metrics()
    (total,) = points["org.apache.kafka.producer.record.send.total"]
    assert (total.value, total.attributes) == (1, {"messaging.client.id": "me"})
    (latency,) = points["org.apache.kafka.producer.request.latency.max"]
    assert latency.value == pytest.approx(float(snapshot.value("request-latency-max")) / 1000)
    nodes = points["org.apache.kafka.producer.node.request.total"]
    assert "0" in {point.attributes["kafka.node.id"] for point in nodes}
    assert not {name for name in points if name.endswith(".ratio")}
    assert "org.apache.kafka.producer.record.send.rate" not in points


def test_a_producer_that_ends_disappears() -> None:
    world = Known()
    collected = Collected(world.producer)
    assert collected.points()["org.apache.kafka.producer.connection.count"]
    world.end()
    assert "org.apache.kafka.producer.connection.count" not in collected.points()


class Traced:
    """A world whose records have spans, and the spans that ended."""

    def __init__(self, *before: Any, sampler: Any = None, **config: Any) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("application")
        self.interceptor = TracingInterceptor(provider)
        self.world = World(interceptor_classes=[*before, self.interceptor], **config)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def headers(self) -> list[dict[str, bytes | None]]:
        return [dict(record.headers) for record in self.world.cluster.logs["test", 0].records]


def traceparent(span: Any) -> bytes:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}".encode()


def test_a_span_a_record_until_its_acknowledgement() -> None:
    traced = Traced()
    with traced.tracer.start_as_current_span("request") as request:
        for key in (b"a", b"b"):
            traced.world.send(b"vv", key=key, headers=[("own", b"1")])
    assert [span.name for span in traced.spans] == ["request"]
    traced.world.settle()
    _, first, second = traced.spans
    assert traced.headers() == [{"own": b"1", "traceparent": traceparent(span)} for span in (first, second)]
    assert (first.name, first.kind, first.status.status_code) == ("send test", SpanKind.PRODUCER, StatusCode.UNSET)
    assert first.parent is not None and first.parent.span_id == request.get_span_context().span_id
    assert first.attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "test",
        "messaging.message.body.size": 2,
        "messaging.kafka.message.key": "a",
        "messaging.destination.partition.id": "0",
        "messaging.kafka.offset": 0,
    }
    assert traced.interceptor._open == {}


def test_a_record_that_is_passed_on_stays_in_its_trace() -> None:
    traced = Traced()
    came_with = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    traced.world.send(None, headers=[("traceparent", came_with), ("own", b"1")])
    traced.world.settle()
    (span,) = traced.spans
    assert span.parent is not None and f"{span.parent.span_id:x}" == "b7ad6b7169203331"
    assert traced.headers() == [{"own": b"1", "traceparent": traceparent(span)}]
    assert span.attributes is not None and span.attributes["messaging.kafka.message.tombstone"] is True


def test_a_span_of_a_record_that_fails() -> None:
    traced = Traced(max_request_size=1000)
    traced.world.cluster.fail("test", 1, 29)
    traced.world.send(b"v", partition=1)
    traced.world.settle()
    assert isinstance(traced.world.send(bytes(5000)).exception(0), RecordTooLargeError)
    with pytest.raises(TypeError):
        traced.world.send("text")  # type: ignore[arg-type]
    refused, large, wrong = traced.spans
    kinds = [span.attributes["error.type"] for span in (refused, large, wrong) if span.attributes is not None]
    assert kinds == ["TopicAuthorizationError", "RecordTooLargeError", "UnserializableTypeError"]
    assert {span.status.status_code for span in traced.spans} == {StatusCode.ERROR}
    assert "max.request.size" in str(large.status.description)
    assert refused.attributes is not None and refused.attributes["messaging.destination.partition.id"] == "1"
    assert traced.interceptor._open == {}


def test_what_is_not_sampled_is_passed_on_and_not_kept() -> None:
    traced = Traced(sampler=ALWAYS_OFF)
    traced.world.send(b"v")
    assert traced.interceptor._open == {}
    traced.world.settle()
    (headers,) = traced.headers()
    flags = int((headers["traceparent"] or b"")[-2:], 16)
    assert not flags & 1
    assert traced.spans == ()


def test_without_a_propagator_a_span_ends_at_once() -> None:
    known = get_global_textmap()
    set_global_textmap(CompositePropagator([]))
    try:
        traced = Traced()
        traced.world.send(b"v")
        assert [span.name for span in traced.spans] == ["send test"]
    finally:
        set_global_textmap(known)


def test_spans_that_were_lost_end_with_the_producer() -> None:
    traced = Traced()
    traced.world.send(b"v")
    traced.interceptor.close()
    assert [span.name for span in traced.spans] == ["send test"]


def test_as_a_class_it_knows_the_client_s_id_and_without_an_sdk_it_does_nothing() -> None:
    world = World(interceptor_classes=[TracingInterceptor], client_id="me")
    world.send(b"v")
    world.settle()
    assert world.values() == [b"v"]
    interceptor = TracingInterceptor()
    interceptor.configure({"client.id": "me"})
    assert interceptor._attributes["messaging.client.id"] == "me"
    assert not trace.get_current_span().is_recording()
    assert interceptor.on_send(ProducerRecord("t", b"v")) == ProducerRecord("t", b"v", headers=[])
