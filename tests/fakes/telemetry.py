"""Brokers that take client telemetry: requests by kio, payloads by OpenTelemetry's own classes.

``Receiver`` stands for the plugins of all brokers of a world: one subscription, one list of what was pushed.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, NamedTuple

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

import forebay._insight.telemetry.payload  # noqa: F401  # as in tests/fakes/world.py
from forebay._records.compression import CompressionType
from forebay._records.decompression import decompress
from tests.fakes.broker import Received, error_code
from tests.fakes.world import World
from tests.unit._protocol.kio_peer import make, schema

GET, PUSH = 71, 72
INSTANCE = uuid.UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
INSTANCE_TEXT = "AAECAwQFBgcICQoLDA0ODw"
INTERVAL_MS = 10_000
ALL_METRICS = ("*",)


class Pushed(NamedTuple):
    """One push, as the plugin got it."""

    at: float
    node: int
    subscription_id: int
    terminating: bool
    codec: int
    size: int
    """Bytes on the wire."""
    data: MetricsData

    def metrics(self) -> dict[str, Any]:
        (resource,) = self.data.resource_metrics
        (scope,) = resource.scope_metrics
        return {metric.name: metric for metric in scope.metrics}

    def value(self, name: str, **attributes: str) -> float:
        """The value of the only point with these attributes."""
        return float(self.point(name, **attributes).as_double)

    def point(self, name: str, **attributes: str) -> Any:
        metric = self.metrics()[f"org.apache.kafka.{name}"]
        (found,) = [
            point
            for point in getattr(metric, metric.WhichOneof("data")).data_points
            if attributes.items() <= {each.key: each.value.string_value for each in point.attributes}.items()
        ]
        return found


class Receiver:
    """Answers GetTelemetrySubscriptions and PushTelemetry for every broker of ``world``."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.subscription_id = 7
        self.interval_ms = INTERVAL_MS
        self.codecs: tuple[int, ...] = ()
        self.max_bytes = 1 << 20
        self.delta = False
        self.metrics: tuple[str, ...] = ALL_METRICS
        self.instance: uuid.UUID | None = INSTANCE
        self.asked: list[tuple[float, uuid.UUID | None]] = []
        """When, and as which instance, a subscription was asked for."""
        self.pushes: list[Pushed] = []
        self.refuse: list[int] = []
        """Error codes for the next pushes."""
        self.refuse_asking: list[int] = []
        for broker in world.cluster.brokers.values():
            broker.ranges |= {GET: (0, 0), PUSH: (0, 0)}
            broker.script |= {GET: self.subscribe, PUSH: self.take}

    def subscribe(self, request: Received) -> None:
        self.asked.append((self.world.now, request.body.client_instance_id))
        request.answer(
            make(
                schema("get_telemetry_subscriptions", 0, "response"),
                "GetTelemetrySubscriptionsResponse",
                throttle_time=timedelta(0),
                error_code=error_code(self.refuse_asking.pop(0) if self.refuse_asking else 0),
                client_instance_id=self.instance,
                subscription_id=self.subscription_id,
                accepted_compression_types=self.codecs,
                push_interval=timedelta(milliseconds=self.interval_ms),
                telemetry_max_bytes=self.max_bytes,
                delta_temporality=self.delta,
                requested_metrics=self.metrics,
            )
        )

    def take(self, request: Received) -> None:
        body = request.body
        assert body.client_instance_id == INSTANCE
        raw = body.metrics
        if body.compression_type:
            raw = decompress(CompressionType(body.compression_type), raw, 1 << 24)
        self.pushes.append(
            Pushed(
                self.world.now,
                request.broker.node.id,
                body.subscription_id,
                body.terminating,
                body.compression_type,
                len(body.metrics),
                MetricsData.FromString(raw),
            )
        )
        code = self.refuse.pop(0) if self.refuse else 0
        if not code and body.subscription_id != self.subscription_id:
            code = 117
        request.answer(
            make(
                schema("push_telemetry", 0, "response"),
                "PushTelemetryResponse",
                throttle_time=timedelta(0),
                error_code=error_code(code),
            )
        )


def world_with_receiver(**options: Any) -> tuple[World, Receiver]:
    """A world whose brokers take metrics from the start; the first push is an interval after the subscription."""
    world = World(known=False, **options)
    receiver = Receiver(world)
    world.learn(*world.cluster.topics)
    return world, receiver
