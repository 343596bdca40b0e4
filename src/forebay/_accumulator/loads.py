"""PartitionLoads: tells each topic's partitioner how long its queues are, so that it prefers short ones (KIP-794)."""

from __future__ import annotations

import math
from typing import Any

import cython
from cython.cimports.forebay._runtime.mutex import acquire, release

from forebay._accumulator.topic import PartitionQueue, TopicState

INFINITY: cython.double = math.inf
WEIGHED_AT_ONCE = cython.declare(cython.Py_ssize_t, 64)
WEIGHING_MS = cython.declare(cython.double, 0.005)
"""Ms for each partition between two weighings of many, so that weighing costs a percent or two."""


@cython.final
@cython.cclass
class PartitionLoads:
    """Sender's thread only.

    Args:
        availability_timeout_ms: leaves out partitions of brokers that take no request for so long; 0 for never.
    """

    def __init__(self, availability_timeout_ms: cython.double) -> None:
        self.availability_timeout_ms = availability_timeout_ms
        self.latency: dict[int, list[float]] = {}
        self.topics: set[Any] = set()
        self.weigh_at = -INFINITY

    @cython.ccall
    def update_node_latency(self, node_id: cython.int, now: cython.double, can_drain: cython.bint) -> object:
        """Notes that there was data for a node, and whether the node could take it."""
        if self.availability_timeout_ms <= 0:
            return None
        times = self.latency.setdefault(node_id, [now, now])
        times[0] = now
        if can_drain:
            times[1] = now
        return None

    def _is_available(self, node_id: int) -> bool:
        if node_id < 0:
            return False
        times = self.latency.get(node_id)
        return times is None or times[0] - times[1] <= self.availability_timeout_ms

    @cython.cfunc
    def note(self, topic: TopicState) -> cython.void:
        """A queue of the topic has grown past one batch."""
        topic.loaded = True
        self.topics.add(topic)

    @cython.cfunc
    @cython.exceptval(-1)
    def weigh(self, now: cython.double) -> cython.int:
        """Updates the partitioners of topics that were noted since the last call, and of those weighted then."""
        if len(self.topics) > 0 and now >= self.weigh_at:
            self._weigh(now)
        return 0

    def _weigh(self, now: float) -> None:
        topic: TopicState
        seen: cython.Py_ssize_t = 0
        for topic in list(self.topics):
            if not topic.loaded and not topic.weighted:
                self.topics.discard(topic)
                continue
            seen += topic.partition_count
            sizes = []
            partitions = []
            queue: PartitionQueue
            for queue in topic.queues[: topic.partition_count]:
                if queue.leader_id >= 0 and (self.availability_timeout_ms <= 0 or self._is_available(queue.leader_id)):
                    sizes.append(len(queue.batches))
                    partitions.append(queue.partition)
            loads = topic.partitioner.loads(sizes, partitions) if topic.loaded else ((), ())
            sticky: PartitionQueue = topic.queue(topic.partitioner.peek())
            acquire(sticky.lock)
            try:
                topic.partitioner.set_loads(loads)
            finally:
                release(sticky.lock)
            topic.weighted = topic.loaded
            topic.loaded = False
        if seen > WEIGHED_AT_ONCE:
            self.weigh_at = now + seen * WEIGHING_MS
