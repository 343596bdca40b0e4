"""What the benches write to: a real Kafka of the pinned version, or the sink that only acknowledges."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from typing import Any, Protocol

import psutil  # type: ignore[import-untyped]

from bench.sink import AcknowledgingSink
from tools.kafka import RealKafka

HEAP_MB = 1024
PARTITIONS = 6
_numbers = itertools.count()


class Target(Protocol):
    """A broker as the benches see it."""

    name: str
    kafka: RealKafka | None

    @property
    def bootstrap_servers(self) -> str: ...

    def fresh_topic(self) -> str:
        """A new topic of PARTITIONS partitions."""
        ...

    def take(self, topic: str) -> int:
        """How many records arrived in a topic, which is then removed."""
        ...

    def cpu_seconds(self) -> float:
        """What the broker used so far."""
        ...


class KafkaTarget:
    """One real broker."""

    name = "Apache Kafka"

    def __init__(self, kafka: RealKafka) -> None:
        self.kafka: RealKafka | None = kafka
        self.bootstrap_servers = kafka.bootstrap_servers
        self._kafka = kafka
        self.name = f"Apache Kafka {kafka.version}"

    def fresh_topic(self) -> str:
        name = f"bench-{os.getpid()}-{next(_numbers)}"
        self._kafka.create_topic(name, PARTITIONS)
        return name

    def take(self, topic: str) -> int:
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.admin._listoffsets import OffsetSpec

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 4})
        latest: Any = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(PARTITIONS)}  # type: ignore[no-untyped-call]
        ends = [future.result(30).offset for future in admin.list_offsets(latest).values()]
        admin.delete_topics([topic])[topic].result(30)
        return sum(ends)

    def cpu_seconds(self) -> float:
        times = psutil.Process(self._kafka.pid()).cpu_times()
        return float(times.user + times.system)


class SinkTarget:
    """The sink that only acknowledges."""

    name = "acknowledging sink"
    kafka: RealKafka | None = None

    def __init__(self, sink: AcknowledgingSink) -> None:
        self.bootstrap_servers = sink.bootstrap_servers
        self._sink = sink

    def fresh_topic(self) -> str:
        return f"bench-{next(_numbers)}"

    def take(self, topic: str) -> int:
        return int(self._sink.summary()["records"].get(topic, 0))

    def cpu_seconds(self) -> float:
        return float(self._sink.summary()["cpu_s"])


@contextlib.contextmanager
def target(sink: bool) -> Iterator[Target]:
    """Starts one, and ends it with the block.

    Raises:
        JarsUnavailable, KafkaFailed: there is no real Kafka to be had here.
    """
    if sink:
        with AcknowledgingSink(PARTITIONS) as started:
            yield SinkTarget(started)
    else:
        # Removed topics give their disk back at once.
        with RealKafka(heap_mb=HEAP_MB, properties={"log.segment.delete.delay.ms": "1000"}) as kafka:
            yield KafkaTarget(kafka)
