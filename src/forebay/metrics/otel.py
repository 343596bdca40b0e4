"""Metrics and spans for OpenTelemetry (extra ``otel``, which is the API alone; the application brings an SDK).

::

    from forebay.metrics.otel import ProducerMeters, TracingInterceptor

    ProducerMeters()
    producer = KafkaProducer(bootstrap_servers="localhost:9092", interceptor_classes=[TracingInterceptor])

Names are those of OpenTelemetry's semantic conventions for messaging.  Kafka's own metrics have the names that KIP-714
gives them.  Nothing is counted for the metrics: they are read when the SDK collects.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from forebay._runtime.extras import of_extra

with of_extra(__name__, "otel"):
    from opentelemetry import propagate, trace
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

from forebay._metrics import names
from forebay._metrics.names import telemetry_name
from forebay._metrics.registry import Kind, MetricName, Reading
from forebay._metrics.sensor import BOUNDS_MS
from forebay._runtime.version import VERSION
from forebay.metrics._exported import Watched, in_base_unit, known_names, readings, tags_of
from forebay.model import ProducerRecord, RecordMetadata
from forebay.producer import KafkaProducer

__all__ = ["ProducerMeters", "TracingInterceptor"]


def __dir__() -> list[str]:
    return sorted(__all__)


SENDING = {"messaging.system": "kafka", "messaging.operation.name": "send", "messaging.operation.type": "send"}
"""Attributes of everything here."""
MOST_VALUES, MOST_OF_ALL = 1_000, 10_000
"""Of the records between two collections, how many go into the histogram one by one: of a topic, and of all topics."""
MIDDLES_S = [*(bound * 0.75 / 1000 for bound in BOUNDS_MS), BOUNDS_MS[-1] * 1.5 / 1000]
"""A value for each bucket, in seconds."""
LEFT_OUT = (Kind.RATE, Kind.COUNT_RATE, Kind.RATIO)
"""As in Prometheus, totals tell them."""
OTHER_ERROR = "_OTHER"
"""The convention's word for an error whose type is not known."""

Attributes = dict[str, str]
Buckets = tuple[int, ...]


class ProducerMeters:
    """Instruments for the process's producers; made once for a meter provider, because instruments cannot be removed.

    ``messaging.client.sent.messages`` counts records that have their end, by topic; those that failed have the
    attribute ``error.type``.  ``messaging.client.operation.duration`` has the seconds from send to acknowledgement.  An
    instrument takes values one by one, so a collection gives it at most about 1,000 values of a topic, and 10,000 of
    all.  If there were more records, those values have the same distribution.  The others are Kafka's,
    ``org.apache.kafka.producer...``, in seconds and bytes.

    Args:
        meter_provider: None for the global one.
        producers: the producers to read, which this does not keep alive; None: all of the process, also later ones.

    Raises:
        TypeError: one is no KafkaProducer or AsyncKafkaProducer.
    """

    def __init__(self, meter_provider: MeterProvider | None = None, producers: Iterable[Any] | None = None) -> None:
        self._watched = Watched(producers)
        # Touched by the thread that collects, under the SDK's own lock.
        self._latest: dict[str, list[Observation]] = {}
        self._measured: weakref.WeakKeyDictionary[KafkaProducer, dict[str, Buckets]] = weakref.WeakKeyDictionary()
        """The buckets of a producer's topics, as far as their values went into the histogram."""
        meter = get_meter("forebay", VERSION, meter_provider)
        self._durations = meter.create_histogram(
            "messaging.client.operation.duration",
            "s",
            "Duration of messaging operation initiated by a producer or consumer client.",
            explicit_bucket_boundaries_advisory=[bound / 1000 for bound in BOUNDS_MS],
        )
        # The first instrument reads for all: a collection asks them in this order.
        meter.create_observable_counter(
            "messaging.client.sent.messages",
            [self._read],
            "{message}",
            "Number of messages producer attempted to send to the broker.",
        )
        for name in known_names():
            if name.kind in LEFT_OUT or name.name in names.OLD_NAMES:
                continue
            unit = {"": "1", "bytes": "By"}.get(name.unit, "s")
            is_counter = name.kind in (Kind.TOTAL, Kind.COUNT_TOTAL)
            make = meter.create_observable_counter if is_counter else meter.create_observable_gauge
            make(telemetry_name(name), [self._reader(telemetry_name(name))], unit, name.description)

    def _read(self, options: CallbackOptions) -> list[Observation]:
        latest: dict[str, list[Observation]] = {}
        sent: list[Observation] = []
        found = [(client_id, each, list(readings(each))) for client_id, each in self._watched.producers()]
        topics = sum(reading.name.kind is Kind.HISTOGRAM for *_, of_one in found for reading in of_one)
        most = min(MOST_VALUES, max(1, MOST_OF_ALL // max(1, topics)))
        for client_id, producer, of_one in found:
            measured = self._measured.setdefault(producer, {})
            for reading in of_one:
                attributes = {"messaging.client.id": client_id, **_attributes(reading.name)}
                if reading.name.kind is Kind.HISTOGRAM:
                    self._measure(reading, measured, attributes, most)
                    sent.append(Observation(reading.number, SENDING | attributes))
                elif (reading.name.group, reading.name.name) == (names.TOPIC, "record-error-total") and reading.value:
                    failed = SENDING | attributes | {"error.type": OTHER_ERROR}
                    sent.append(Observation(int(reading.value), failed))
                if not math.isnan(value := _number(reading)):
                    latest.setdefault(telemetry_name(reading.name), []).append(Observation(value, attributes))
        self._latest = latest
        return sent

    def _reader(self, name: str) -> Callable[[CallbackOptions], list[Observation]]:
        return lambda options: self._latest.get(name, [])

    def _measure(self, reading: Reading, measured: dict[str, Buckets], attributes: Attributes, most: int) -> None:
        """Puts what is new in the topic's buckets into the histogram, about ``most`` values of it."""
        topic = dict(reading.name.tags)["topic"]
        before = measured.get(topic, (0,) * len(reading.buckets))
        fresh = [now - then for now, then in zip(reading.buckets, before, strict=True)]
        scale = min(1.0, most / max(1, sum(fresh)))
        for middle, count in zip(MIDDLES_S, fresh, strict=True):
            for _ in range(math.ceil(count * scale)):
                self._durations.record(middle, SENDING | attributes)
        measured[topic] = reading.buckets


def _attributes(name: MetricName) -> Attributes:
    words = {"topic": "messaging.destination.name", "node": "kafka.node.id"}
    return {words[key]: value for key, value in tags_of(name).items()}


def _number(reading: Reading) -> float:
    if isinstance(reading.value, str):
        return math.nan
    return in_base_unit(reading.name, float(reading.value))


class TracingInterceptor:
    """An interceptor that makes a span of each record, from send to its acknowledgement.

    The span is a child of the current one; where there is none, of the one that the record's headers name.  The
    propagator writes it into the headers (W3C: ``traceparent``), in place of what was there.  It ends with
    partition and offset, or with the error.  It is for the end of ``interceptor.classes``: what comes behind it must
    keep the headers, or its spans do not end before ``close``.

    A span costs more than a record.  Sample where there are many.  ``span.end`` runs on the sender's thread, so export
    with a processor that takes spans and returns, such as BatchSpanProcessor.

    Args:
        tracer_provider: None for the global one.
    """

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("forebay", VERSION, tracer_provider)
        self._attributes: Attributes = dict(SENDING)
        # Any thread; each step is atomic.
        self._open: dict[tuple[tuple[str, bytes | None], ...], Span] = {}

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._attributes["messaging.client.id"] = str(configs["client.id"])

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        fields = propagate.get_global_textmap().fields
        context = None
        if not trace.get_current_span().get_span_context().is_valid:
            given = {name: value.decode("latin-1") for name, value in record.headers if name in fields and value}
            context = propagate.extract(given)
        span = self._tracer.start_span(
            f"send {record.topic}", context, SpanKind.PRODUCER, {**self._attributes, **_of_record(record)}
        )
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span, context))
        written = tuple((name, value.encode("latin-1")) for name, value in carrier.items())
        others = [pair for pair in record.headers if pair[0] not in fields]
        if span.is_recording() and written:
            self._open[written] = span
        else:
            span.end()  # nothing will tell it apart, or nobody wants it
        return ProducerRecord(
            record.topic,
            record.value,
            record.key,
            headers=[*others, *written],
            partition=record.partition,
            timestamp=record.timestamp,
        )

    def on_acknowledgement(
        self,
        metadata: RecordMetadata | None,
        error: BaseException | None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> None:
        fields = propagate.get_global_textmap().fields
        span = self._open.pop(tuple(pair for pair in headers if pair[0] in fields), None)
        if span is None:
            return
        if metadata is not None and metadata.partition >= 0:
            span.set_attribute("messaging.destination.partition.id", str(metadata.partition))
        if error is not None:
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR, str(error)))
        elif metadata is not None and metadata.offset >= 0:
            span.set_attribute("messaging.kafka.offset", metadata.offset)
        span.end()

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].end()


def _of_record(record: ProducerRecord) -> dict[str, str | bool | int]:
    found: dict[str, str | bool | int] = {"messaging.destination.name": record.topic}
    if record.value is None:
        found["messaging.kafka.message.tombstone"] = True
    elif isinstance(record.value, bytes | bytearray):
        found["messaging.message.body.size"] = len(record.value)
    if isinstance(record.key, str):
        found["messaging.kafka.message.key"] = record.key
    elif isinstance(record.key, bytes):
        found["messaging.kafka.message.key"] = record.key.decode(errors="replace")
    return found
