"""A whole producer in memory: manual clock, no threads, and the sender's turns are taken by the test."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

# What a producer imports on a thread of its own where it is needed; a hand-driven one has it at once.
import forebay._accumulator.split
import forebay._insight.reading
import forebay._insight.telemetry.reporter
import forebay._insight.text  # noqa: F401
from forebay import DeliveryReport
from forebay._assembly import Surroundings
from forebay._delivery.future import RecordFuture
from forebay.model import RecordMetadata
from forebay.producer import KafkaProducer
from forebay.testing.clock import ManualClock
from forebay.testing.memory import MemorySelector
from forebay.testing.resolver import StaticResolver
from tests.fakes.produce import ProducingCluster, Where


class HandDriven(KafkaProducer):
    """A KafkaProducer whose thread is never started."""

    def _start(self, config: Any, surroundings: Surroundings) -> None:
        self._put_together(config, surroundings)


class Told(list[tuple[RecordMetadata, BaseException | None]]):
    """What an ``on_delivery`` was called with."""

    def __call__(self, report: DeliveryReport) -> None:
        self.append((report.metadata, report.error))


class World:
    """One producer over ``ProducingCluster``.  Brokers are numbered from 0; jitter is off unless ``random`` says so.

    Args:
        topics: name to number of partitions; led by the brokers in turn.
        idempotent: False for records without producer id, as most of the Java sender's tests have it.
        known: whether metadata (and the producer id) are fetched before the test begins.
        kind: the producer's class.
        config: options of the producer, by Kafka's names with underscores.
    """

    def __init__(
        self,
        *,
        nodes: int = 1,
        topics: Mapping[str, int] | None = None,
        idempotent: bool = False,
        known: bool = True,
        random: Callable[[], float] = lambda: 0.5,
        kind: type[HandDriven] = HandDriven,
        **config: Any,
    ) -> None:
        self.clock = ManualClock()
        self.selector = MemorySelector(self.clock)
        self.cluster = ProducingCluster(self.selector, nodes)
        for topic, partitions in ({"test": 2} if topics is None else topics).items():
            self.cluster.create(topic, partitions, range(nodes))
        given = {
            "bootstrap_servers": [f"{node.host}:{node.port}" for node in self.cluster.bootstrap()],
            "enable_idempotence": idempotent,
            "linger_ms": 0,
            "retry_backoff_ms": 50,
            "retry_backoff_max_ms": 50,
            "request_timeout_ms": 5000,
            "delivery_timeout_ms": 10_000,
            "max_block_ms": 1000,
            **config,
        }
        around = Surroundings(clock=self.clock, random=random, selector=lambda: self.selector, resolver=StaticResolver)
        self.producer = kind._with(around, **given)
        self.parts = self.producer._parts
        self.sender = self.parts.sender
        self.accumulator = self.parts.accumulator
        # No threads here: what is learned of compression would depend on when they run.
        self.accumulator.closer.helpers = None
        self.pool = self.accumulator.pool
        self.metadata = self.parts.metadata
        if known:
            self.learn(*self.cluster.topics)

    @property
    def now(self) -> float:
        return self.clock.now()

    def learn(self, *topics: str) -> None:
        """Fetches the topics' metadata and, if the producer needs one, its id."""
        for topic in topics:
            self.metadata.add_topic(topic, self.now)
        self.settle(12)
        for node in self.metadata.cluster().nodes:
            self.parts.client.ready(node, self.now)
        self.settle(4)
        for topic in topics:
            self.accumulator.refresh(topic, self.metadata.cluster())

    def turn(self) -> None:
        """One turn in which no time passes."""
        self.selector.wakeup()
        self.sender.run_once(self.now)

    def settle(self, turns: int = 8) -> None:
        """So many turns in which no time passes."""
        for _ in range(turns):
            self.turn()

    def wait(self) -> None:
        """One turn that waits for the next event, and moves the clock to it."""
        self.sender.run_once(self.now)

    def let_pass(self, ms: float) -> None:
        """Turns that wait for their events, as the sender's thread takes them, while ``ms`` pass."""
        end = self.now + ms
        self.selector.call_at(end, self.selector.wakeup)
        while self.now < end:
            self.wait()

    def advance(self, ms: float) -> None:
        self.clock.advance(ms)

    def run(self, ms: float, step: float = 10) -> None:
        """Turns while ``ms`` pass, in steps."""
        end = self.now + ms
        while self.now < end:
            self.settle(3)
            self.advance(min(step, end - self.now))
        self.settle(3)

    def until(self, done: Callable[[], bool], *, limit_ms: float = 60_000, step: float = 10) -> None:
        """Turns until ``done``; fails when so much time has passed."""
        end = self.now + limit_ms
        while not done():
            assert self.now < end, f"still not after {limit_ms} ms"
            self.settle(3)
            if not done():
                self.advance(step)

    def send(
        self, value: bytes | None = b"v", topic: str = "test", partition: int | None = 0, **more: Any
    ) -> RecordFuture:
        return self.producer.send(topic, value, partition=partition, **more)

    def values(self, topic: str = "test", partition: int = 0) -> list[bytes | None]:
        """What the partition's log holds."""
        where: Where = (topic, partition)
        return self.cluster.logs[where].values

    def queue(self, topic: str = "test", partition: int = 0) -> Any:
        return self.accumulator.topics[topic].queues[partition]

    @property
    def in_flight(self) -> int:
        """Requests without an answer."""
        return self.parts.client.in_flight_count()

    def metric(self, name: str, group: str = "producer-metrics", **tags: str) -> Any:
        """A metric's value by its name, and tags if there are several."""
        return self.producer.metrics().value(name, group=group, **tags)


class PumpedThread:
    """Stands in for the sender's thread: whoever joins it takes its turns, and time passes with them."""

    def __init__(self, world: World, step: float = 10) -> None:
        self.world = world
        self.step = step
        self.real = world.parts.thread
        self.sender = world.sender
        self.patience_ms = self.real.patience_ms
        self.finished = False
        self.stuck = False
        """As if a callback never came back."""
        world.producer._thread = self  # type: ignore[assignment]

    @property
    def lost(self) -> int:
        return self.real.lost

    def leave(self) -> tuple[int, int]:
        """As ``SenderThread.leave``."""
        return self.real.leave()

    def subscribe(self, ticket: Any) -> bool:
        """As ``SenderThread.subscribe``, for who waits as long as it takes."""
        return self.join(math.inf)

    def purge(self, *, in_queue: bool, in_flight: bool) -> Any:
        """As ``SenderThread.purge``."""
        return self.real.purge(in_queue=in_queue, in_flight=in_flight)

    def join(self, timeout_ms: float) -> bool:
        """As ``SenderThread.join``."""
        end = self.world.now + timeout_ms
        while not self.finished:
            if self.stuck or (self.world.now >= end and not self.sender.forced):
                return False
            if self.sender.forced or not self.sender.has_work():
                self.real._end()
                self.finished = True
            else:
                self.world.turn()
                self.world.advance(min(self.step, max(end - self.world.now, 0)))
        return True
