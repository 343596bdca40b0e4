"""What it costs to look at a producer: CPU of one look by each exporter, and its share at the usual interval.

The producer has sent to some topics of a sink.  A look is a scrape by Prometheus' client, a collection by
OpenTelemetry's SDK, or a question at the socket of ``describe.socket``.  The share is of one processor.  A push to the
brokers (KIP-714) is what the whole process takes more than without pushes, divided by their number.  Two more rows say
what a record costs with an interceptor that does nothing, and with spans that are recorded and not exported.  They are
all of the client's CPU: that of the threads that send, and the sender's.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from typing import Any

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of
from bench.sink import AcknowledgingSink

INTERVAL_S = {"Prometheus": 15.0, "OpenTelemetry": 60.0, "forebay top": 1.0, "KIP-714 push": 1.0}
"""How often each looks by default (Prometheus' example configuration; the SDK's; the command's).

Kafka's own default for pushes is five minutes; nobody would have them more often than each second.
"""
PUSH_INTERVAL_MS = 100
PUSHING_S = 3.0
LOOKS = 20
TOPICS = (1, 100)
RECORDS = 20_000


class Bare:
    """An interceptor that does nothing."""

    def on_send(self, record: Any) -> Any:
        return record


def prometheus(producer: Any) -> Callable[[], Any]:
    from prometheus_client import CollectorRegistry, generate_latest

    from forebay.metrics.prometheus import ProducerCollector

    registry = CollectorRegistry()
    registry.register(ProducerCollector([producer]))
    return lambda: generate_latest(registry)


def opentelemetry(producer: Any) -> Callable[[], Any]:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from forebay.metrics.otel import ProducerMeters

    reader = InMemoryMetricReader()
    ProducerMeters(MeterProvider([reader], shutdown_on_exit=False), [producer])

    def look() -> Any:
        # So many records since the last look that the histogram takes all values that it may.
        for _, sensors in producer._parts.metrics.topics():
            sensors.ack_time.record_even(1, 10, 100_000)
        return reader.get_metrics_data()

    return look


def top(producer: Any) -> Callable[[], Any]:
    from forebay._insight.server import ask

    path = producer._parts.shown.path
    return lambda: ask(path)


LOOK_OF = {"Prometheus": prometheus, "OpenTelemetry": opentelemetry, "forebay top": top}


def looks(bootstrap: str, folder: str, topics: int) -> list[dict[str, Any]]:
    """CPU of a look by each exporter, in ms."""
    from forebay import KafkaProducer

    found = []
    with KafkaProducer(bootstrap_servers=bootstrap, describe_socket=folder) as producer:
        for number in range(topics):
            producer.send(f"topic-{number}", bytes(100))
        producer.flush(60)
        for name, make in LOOK_OF.items():
            look = make(producer)
            look()
            begun = time.process_time()
            for _ in range(LOOKS):
                look()
            ms = (time.process_time() - begun) / LOOKS * 1000
            share = ms / INTERVAL_S[name] / 10
            found.append({"label": f"{name}, {topics} topic(s)", "look_ms": ms, "share_percent": share})
    return found


def pushes(bootstrap: str, topics: int, summary: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """CPU of a push, in ms."""
    without, _ = idle(bootstrap, topics, summary, pushing=False)
    taken, count = idle(bootstrap, topics, summary, pushing=True)
    ms = (taken - without) / count * 1000
    return {"label": f"KIP-714 push, {topics} topic(s)", "look_ms": ms, "share_percent": ms / 10}


def idle(bootstrap: str, topics: int, summary: Callable[[], dict[str, Any]], *, pushing: bool) -> tuple[float, int]:
    """CPU seconds of a producer that has sent and does nothing else for a while, and how many pushes it made."""
    from forebay import KafkaProducer

    with KafkaProducer(bootstrap_servers=bootstrap, enable_metrics_push=pushing) as producer:
        for number in range(topics):
            producer.send(f"topic-{number}", bytes(100))
        producer.flush(60)
        if pushing:
            producer.client_instance_id(60)
        time.sleep(3 * PUSH_INTERVAL_MS / 1000)  # the first push imports what it needs
        before, begun = summary()["pushes"], time.process_time()
        time.sleep(PUSHING_S)
        return time.process_time() - begun, summary()["pushes"] - before


def records(bootstrap: str, label: str, interceptors: list[Any]) -> dict[str, Any]:
    """CPU of a record, in µs."""
    from forebay import KafkaProducer

    with KafkaProducer(bootstrap_servers=bootstrap, interceptor_classes=interceptors) as producer:
        producer.partitions_for("records")
        begun = time.process_time()
        for _ in range(RECORDS):
            producer.send("records", bytes(100))
        producer.flush(60)
        return {"label": label, "record_us": (time.process_time() - begun) / RECORDS * 1e6}


def measure(options: argparse.Namespace) -> Result:
    from opentelemetry.sdk.trace import TracerProvider

    from forebay.metrics.otel import TracingInterceptor

    runs = []
    with AcknowledgingSink(1) as sink, tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for topics in TOPICS:
                runs += looks(sink.bootstrap_servers, folder, topics)
                with AcknowledgingSink(1, push_interval_ms=PUSH_INTERVAL_MS) as asking:
                    runs.append(pushes(asking.bootstrap_servers, topics, asking.summary))
            tracing = TracingInterceptor(TracerProvider(shutdown_on_exit=False))
            for label, chain in (("no interceptor", []), ("an interceptor", [Bare()]), ("spans", [tracing])):
                runs.append(records(sink.bootstrap_servers, label, chain))
    order = list(dict.fromkeys(run["label"] for run in runs))
    return result_of("telemetry", sorted(runs, key=lambda run: order.index(run["label"])))


def show(result: Result) -> None:
    print(f"CPU, median (lowest-highest) of {result['settings']['rounds']}\n")
    columns = [
        Column("ms a look", "look_ms"),
        Column("% of one processor", "share_percent", ".3f"),
        Column("µs a record", "record_us"),
    ]
    print_figures(result, columns, "what looks")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_rounds(parser, 3)


PART = Part("telemetry", __doc__, add_arguments, measure, show)
