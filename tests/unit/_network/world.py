"""A network client over a scripted cluster in memory, with a clock that moves when told or waited for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from forebay._metrics.producer import ProducerMetrics
from forebay._network.client import NetworkClient
from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._network.metadata import Metadata
from forebay._network.options import NetworkOptions
from forebay._network.selector import Selector
from forebay._protocol.versions import ApiKey
from forebay._runtime.clock import Clock
from forebay.model import Node
from forebay.testing.clock import ManualClock
from forebay.testing.memory import MemorySelector
from forebay.testing.resolver import StaticResolver
from tests.fakes.broker import PRODUCE, Received, ScriptedBroker, ScriptedCluster


class Sent:
    """A request's fate."""

    def __init__(self) -> None:
        self.responses: list[ClientResponse] = []
        self.written: list[bool] = []

    @property
    def response(self) -> ClientResponse:
        assert len(self.responses) == 1, self.responses
        return self.responses[0]


class World:
    """Backoffs as in the Java client's network test, unless given; jitter off."""

    OPTIONS: ClassVar[dict[str, Any]] = {
        "client_id": "mock",
        "request_timeout_ms": 1000,
        "max_in_flight": 1000,
        "reconnect_backoff_ms": 10_000,
        "reconnect_backoff_max_ms": 10_000,
        "setup_timeout_ms": 5000,
        "setup_timeout_max_ms": 127_000,
        "rebootstrap": False,
    }

    def __init__(
        self,
        nodes: int = 1,
        *,
        topics: Iterable[str] = (),
        resolver: StaticResolver | None = None,
        random: float = 0.5,
        bootstrap: list[Node] | None = None,
        clock: Clock | None = None,
        selector: Selector | None = None,
        **options: Any,
    ) -> None:
        self.clock = ManualClock()
        self.selector = MemorySelector(self.clock)
        self.cluster = ScriptedCluster(self.selector, nodes)
        self.resolver = resolver or StaticResolver()
        self.updates: list[str | None] = []
        self.metadata = Metadata(
            refresh_backoff_ms=100,
            refresh_backoff_max_ms=1000,
            max_age_ms=300_000,
            max_idle_ms=300_000,
            random=lambda: random,
            on_update=[lambda cluster: self.updates.append(cluster.cluster_id)],
        )
        for topic in topics:
            self.metadata.add_topic(topic, self.now)
        self.metadata.bootstrap(bootstrap or self.cluster.bootstrap())
        self.metrics = ProducerMetrics("mock", self.now)
        self.client = NetworkClient(
            selector=selector or self.selector,
            resolver=self.resolver,
            metadata=self.metadata,
            options=NetworkOptions(**{**self.OPTIONS, **options}),
            metrics=self.metrics,
            clock=clock or self.clock,
            random=lambda: random,
        )
        self.order: list[Sent] = []

    @property
    def now(self) -> float:
        return self.clock.now()

    def broker(self, node_id: int = 1) -> ScriptedBroker:
        return self.cluster.brokers[node_id]

    def node(self, node_id: int = 1) -> Node:
        return self.broker(node_id).node

    def poll(self, timeout_ms: float = 0) -> None:
        self.client.poll(timeout_ms, self.now)

    def until_ready(self, node: Node | None = None, turns: int = 20) -> None:
        """Turns without waiting until the node takes requests."""
        node = node or self.node()
        if self.metadata.version == 0:
            self.settle()
        for _ in range(turns):
            if self.client.ready(node, self.now):
                return
            self.poll()
        raise AssertionError(f"{node} is not ready after {turns} turns")

    def settle(self, turns: int = 10) -> None:
        for _ in range(turns):
            self.poll()

    def send(self, node_id: int = 1, *, timeout_ms: float = 1000, **kwargs: Any) -> Sent:
        """A small request of the Produce API; its answer is parsed as bytes."""
        sent = Sent()

        def done(response: ClientResponse) -> None:
            sent.responses.append(response)
            self.order.append(sent)

        given: dict[str, Any] = {
            "timeout_ms": timeout_ms,
            "on_complete": done,
            "on_written": sent.written.append,
            **kwargs,
        }
        build = given.pop("build", lambda version: [b"body of ", b"version %d" % version])
        parse = given.pop("parse", lambda version, payload: bytes(payload))
        low, high = given.pop("versions", (3, 8))
        self.client.send(ClientRequest(node_id, ApiKey.PRODUCE, low, high, build, parse, **given), self.now)
        return sent

    def echo(self, node_id: int = 1, payload: bytes = b"answer") -> None:
        """From now on the broker answers Produce requests with ``payload``."""

        def answer(request: Received) -> None:
            request.answer_bytes(payload)

        self.broker(node_id).script[PRODUCE] = answer
