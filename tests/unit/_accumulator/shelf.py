"""An accumulator with its pool and schedule over a cluster of the test's making; nothing of the network."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from forebay._accumulator.accumulator import RecordAccumulator
from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.closing import make_final
from forebay._accumulator.partitioner import BuiltInPartitioner
from forebay._accumulator.pool import BufferPool
from forebay._accumulator.schedule import BatchSchedule, ReadyNodes
from forebay._accumulator.topic import PartitionQueue, TopicState
from forebay._delivery.future import RecordFuture
from forebay._records.compression import Compressor
from forebay._records.decoded import Batch
from forebay._records.ratio import CompressionRatioEstimator
from forebay._records.reader import read_batches
from forebay._runtime.backoff import ExponentialBackoff
from forebay.model import Node, PartitionInfo
from forebay.model._cluster import Cluster
from forebay.model._gate import Gate, StampedBatch
from forebay.testing.clock import ManualClock

WAIT, APPENDED, FULL, NEW = 0, 1, 2, 4
TOPIC = "test"
KEY, VALUE = b"key", b"value"
RECORD = 15
"""Bytes of a record of KEY and VALUE, up to offset delta 63."""


def quiet(error: BaseException, result: Any) -> None:
    raise AssertionError(f"a callback raised {error!r}")


class Shelf:
    """As in the Java accumulator's test: partitions 0 and 1 led by node 0, partition 2 by node 1, unless told."""

    topic_id: bytes | None = None
    """The topic's, for the next ``update``."""
    version = 0
    """Of the newest metadata."""

    def __init__(
        self,
        *,
        batch_size: int = 1024,
        pool: int = 10 << 20,
        linger: float = 0,
        delivery: float = 3200,
        leaders: Sequence[int] = (0, 0, 1),
        epoch: int = -1,
        jitter: Callable[[], float] = lambda: 0.5,
        compressor: Compressor | None = None,
        adaptive: bool = False,
        availability: float = 0,
        max_raw: int = 0,
        node_share: int = 0,
        estimator: CompressionRatioEstimator | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.pool = BufferPool(pool, batch_size, node_share)
        self.schedule = BatchSchedule(
            linger_ms=linger,
            delivery_timeout_ms=delivery,
            backoff=ExponentialBackoff(100, 1000, jitter),
            adaptive=adaptive,
            availability_timeout_ms=availability,
        )
        self.estimator = estimator or CompressionRatioEstimator()
        self.accumulator = RecordAccumulator(
            pool=self.pool,
            schedule=self.schedule,
            batch_size=batch_size,
            make_partitioner=lambda topic: BuiltInPartitioner(topic, batch_size, itertools.count().__next__),
            compressor=compressor,
            estimator=self.estimator,
            max_raw_size=max_raw,
            clock=self.clock,
        )
        self.leaders, self.compressor = dict(enumerate(leaders)), compressor
        self.epochs = dict.fromkeys(self.leaders, epoch)
        self.update()

    @property
    def now(self) -> float:
        return self.clock.now()

    def update(self) -> None:
        """Metadata comes in, as ``leaders`` (-1: none) and ``epochs`` say."""
        self.version += 1
        nodes = [Node(number, "localhost", 1111 + number) for number in range(3)]
        infos = [
            PartitionInfo(TOPIC, partition, None if leader < 0 else nodes[leader], self.epochs[partition])
            for partition, leader in self.leaders.items()
        ]
        ids = {} if self.topic_id is None else {TOPIC: self.topic_id}
        self.cluster = Cluster(nodes, infos, version=self.version, topic_ids=ids)
        self.topic: TopicState = self.accumulator.refresh(TOPIC, self.cluster)
        self.accumulator.refresh_all(self.cluster)

    def move(self, partition: int, leader: int, epoch: int | None = None) -> None:
        self.leaders[partition] = leader
        if epoch is not None:
            self.epochs[partition] = epoch
        self.update()

    def append(
        self, partition: int = 0, count: int = 1, value: bytes | None = VALUE, key: bytes | None = KEY, **more: Any
    ) -> RecordFuture:
        """So many records; the last one's future."""
        for _ in range(count):
            status, future = self.accumulator.appender.append_bytes(
                self.topic, partition, value, key=key, now=self.now, **more
            )
            assert status & APPENDED
        return future

    def status(self, partition: int = 0, value: bytes | None = VALUE, key: bytes | None = KEY, **more: Any) -> int:
        return self.accumulator.appender.append_bytes(self.topic, partition, value, key=key, now=self.now, **more)[0]

    def queue(self, partition: int = 0) -> PartitionQueue:
        queue: PartitionQueue = self.topic.queues[partition]
        return queue

    def batches(self, partition: int = 0) -> list[ProducerBatch]:
        return list(self.queue(partition).batches)

    def ready(self, *, send_all: bool = False) -> ReadyNodes:
        return self.schedule.ready(self.now, send_all)

    def drain(self, node: int, max_size: int = 1 << 30, gate: Any = None) -> list[ProducerBatch]:
        self.schedule.has_undrained()  # takes in what was activated, as ready() does
        self.accumulator.drain.begin()
        batches: list[ProducerBatch] = self.accumulator.drain.drain(node, max_size, self.now, gate)
        return batches

    def drain_partitions(self, *nodes: int, max_size: int = 1 << 30) -> list[int]:
        return [batch.partition for node in nodes for batch in self.drain(node, max_size)]

    def finish(self, batch: ProducerBatch, offset: int = 0) -> None:
        """Acknowledges a drained batch, after which nothing is in flight."""
        assert batch.complete(offset, -1, quiet)
        self.accumulator.deallocate(batch)
        self.pool.serve_deferred(self.now, True)


class Holding(Gate):
    """A gate that holds back some partitions, and notes what it stamped."""

    def __init__(self, *held: int) -> None:
        self.held = held
        self.stamped: list[int] = []

    def may_drain(self, queue: Any, batch: StampedBatch) -> bool:
        return queue.partition not in self.held

    def stamp(self, queue: Any, batch: StampedBatch) -> int:
        self.stamped.append(queue.partition)
        return 0

    def comes_before(self, batch: StampedBatch, other: StampedBatch) -> bool:
        return other.base_sequence < 0 or batch.base_sequence < other.base_sequence


def read(batch: ProducerBatch, compressor: Any = None) -> Batch:
    """Closes a batch, and reads its bytes back."""
    make_final(batch, compressor)
    (found,) = read_batches(bytes(batch.header()) + b"".join(bytes(piece) for piece in batch.records.payload))
    return found
