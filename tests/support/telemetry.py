"""A real Kafka with a plugin that takes client telemetry (KIP-714), compiled from ``TelemetryReceiver.java``."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kio.schema.get_telemetry_subscriptions.v0 import request as subscriptions
from kio.schema.get_telemetry_subscriptions.v0 import response as subscribed
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from tests.support.admin import ask
from tests.support.fixtures import real_kafka
from tests.support.pace import HANG_S, until
from tools.kafka import RealKafka, ensure_jars
from tools.kafka.jars import java

PLUGIN = Path(__file__).with_name("TelemetryReceiver.java")
TOOL = "org.apache.kafka.tools.ClientMetricsCommand"
# Also where there is no command javac: a Java that runs sources has the compiler as a module.
COMPILER = ("-m", "jdk.compiler/com.sun.tools.javac.Main")


class Push(NamedTuple):
    """A push as the plugin got it; the broker has decompressed it."""

    client_id: str
    instance_id: str
    is_last: bool
    content_type: str
    data: MetricsData

    def metrics(self) -> dict[str, Any]:
        """By name."""
        return {
            metric.name: metric
            for resource in self.data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def sum_of(self, name: str, **attributes: str) -> float:
        """The sum of the points with these attributes; 0 if there are none."""
        metric = self.metrics().get(name)
        if metric is None:
            return 0.0
        return sum(
            float(point.as_double)
            for point in getattr(metric, metric.WhichOneof("data")).data_points
            if attributes.items() <= {each.key: each.value.string_value for each in point.attributes}.items()
        )


class TelemetryKafka:
    """The broker, its subscriptions, and what it was told."""

    def __init__(self, kafka: RealKafka, file: Path) -> None:
        self.kafka = kafka
        self.bootstrap_servers = kafka.bootstrap_servers
        self._file = file

    def create_topic(self, name: str, partitions: int = 1, **options: Any) -> None:
        self.kafka.create_topic(name, partitions, **options)

    def subscribe(self, client_id: str, metrics: str, interval_ms: int) -> None:
        """Asks the clients of this id for metrics; returns when the broker tells them so.

        The tool ends before that.  A client that asks too early is told that nothing is wanted, and asks again after
        minutes.
        """
        what = ("--metrics", metrics, "--interval", str(interval_ms), "--match", f"client_id={client_id}")
        self._tool("--alter", "--name", client_id, *what)
        until(lambda: self._wanted(client_id) == (metrics,), f"the broker asks {client_id} for {metrics}")

    def unsubscribe(self, client_id: str) -> None:
        self._tool("--delete", "--name", client_id)
        until(lambda: self._wanted(client_id) == (), f"the broker asks {client_id} for nothing")

    def _wanted(self, client_id: str) -> tuple[str, ...]:
        """What the broker wants of a new client of this id."""
        request = subscriptions.GetTelemetrySubscriptionsRequest(client_instance_id=None)
        answer = ask(self.kafka.address(), request, subscribed.GetTelemetrySubscriptionsResponse, client_id)
        metrics: tuple[str, ...] = answer.requested_metrics
        return metrics

    def _tool(self, *arguments: str) -> None:
        self.kafka.run_tool(TOOL, "--bootstrap-server", self.bootstrap_servers, *arguments)

    def pushes(self, client_id: str) -> list[Push]:
        """What clients of this id pushed so far, in order."""
        text = self._file.read_text() if self._file.exists() else ""
        lines = text.split("\n")[:-1]  # the broker may be in the middle of the last one
        return [push for push in map(_parsed, lines) if push.client_id == client_id]

    def wait_for(self, client_id: str, count: int) -> list[Push]:
        """The pushes once there are ``count``; fails if they do not come."""
        until(lambda: len(self.pushes(client_id)) >= count, f"{count} pushes of {client_id}")
        return self.pushes(client_id)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """The plugin throws."""
        flag = self._file.with_name(f"{self._file.name}.refuse")
        flag.touch()
        try:
            yield
        finally:
            flag.unlink()


def _parsed(line: str) -> Push:
    client_id, instance_id, last, content_type, data = line.split("\t")
    metrics = MetricsData.FromString(base64.b64decode(data))
    return Push(client_id, instance_id, last == "last", content_type, metrics)


@contextmanager
def telemetry_kafka(folder: Path) -> Iterator[TelemetryKafka]:
    """Compiles the plugin into ``folder`` and starts a broker with it."""
    classes, file = folder / "classes", folder / "pushes"
    (jar,) = ensure_jars().glob("kafka-clients-*.jar")
    command = [java(), *COMPILER, "-proc:none", "-d", str(classes), "-cp", str(jar), str(PLUGIN)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    options = [f"-Dforebay.telemetry.file={file}"]
    with real_kafka(properties={"metric.reporters": PLUGIN.stem}, plugins=classes, jvm_options=options) as kafka:
        yield TelemetryKafka(kafka, file)
