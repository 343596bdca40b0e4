"""An immutable picture of the cluster, as the newest metadata shows it.

Any thread may read it; a new picture replaces the whole, so no reader ever sees a mix of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from forebay.model import Node, PartitionInfo, TopicPartition


class Cluster:
    """Nodes, and the partitions of the topics asked for; handed to user partitioners too."""

    __slots__ = (
        "_available",
        "_nodes",
        "_partitions",
        "_topic_ids",
        "cluster_id",
        "controller_id",
        "invalid_topics",
        "unauthorized_topics",
        "version",
    )

    def __init__(
        self,
        nodes: Iterable[Node] = (),
        partitions: Iterable[PartitionInfo] = (),
        *,
        cluster_id: str | None = None,
        controller_id: int = -1,
        unauthorized_topics: Iterable[str] = (),
        invalid_topics: Iterable[str] = (),
        topic_ids: Mapping[str, bytes] = MappingProxyType({}),
        version: int = 0,
        before: Cluster | None = None,
        unchanged: Iterable[str] = (),
    ) -> None:
        """See the class.

        Args:
            before: the picture that this one replaces.
            unchanged: topics whose partitions are as ``before`` has them; this picture shares its tuples, so that a
                reader tells by ``is`` that nothing changed.
        """
        self._nodes: Mapping[int, Node] = MappingProxyType({node.id: node for node in nodes})
        by_topic: dict[str, list[PartitionInfo]] = {}
        for info in partitions:
            by_topic.setdefault(info.topic, []).append(info)
        ordered = {topic: tuple(sorted(infos, key=lambda info: info.partition)) for topic, infos in by_topic.items()}
        available = {
            topic: tuple(info.partition for info in infos if info.leader is not None)
            for topic, infos in ordered.items()
        }
        if before is not None:
            for topic in unchanged:
                ordered[topic] = before.partitions(topic)
                available[topic] = before.available_partitions(topic)
        self._partitions: Mapping[str, tuple[PartitionInfo, ...]] = MappingProxyType(ordered)
        self._available = available
        self.cluster_id: str | None = cluster_id
        self.controller_id: int = controller_id
        self.unauthorized_topics: frozenset[str] = frozenset(unauthorized_topics)
        self.invalid_topics: frozenset[str] = frozenset(invalid_topics)
        self._topic_ids = topic_ids
        self.version: int = version
        """Counts successful metadata updates; 0 for the bootstrap picture."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._nodes.values())

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(self._partitions)

    def node(self, node_id: int) -> Node | None:
        return self._nodes.get(node_id)

    def partitions(self, topic: str) -> tuple[PartitionInfo, ...]:
        """All partitions of ``topic`` in order of number; empty if the topic is unknown."""
        return self._partitions.get(topic, ())

    def available_partitions(self, topic: str) -> tuple[int, ...]:
        """Numbers of the partitions that have a leader now."""
        return self._available.get(topic, ())

    def partition_count(self, topic: str) -> int:
        """How many partitions ``topic`` has; 0 if it is unknown."""
        return len(self._partitions.get(topic, ()))

    def topic_id(self, topic: str) -> bytes | None:
        """The 16 bytes by which brokers tell ``topic`` from one that had its name before; None if they are not known.

        Brokers before Kafka 2.8 give topics no ids.
        """
        return self._topic_ids.get(topic)

    def partition(self, topic: str, partition: int) -> PartitionInfo | None:
        infos = self._partitions.get(topic, ())
        if 0 <= partition < len(infos) and infos[partition].partition == partition:
            return infos[partition]
        return next((info for info in infos if info.partition == partition), None)

    def leader(self, where: TopicPartition) -> Node | None:
        info = self.partition(where.topic, where.partition)
        return info.leader if info else None

    def __repr__(self) -> str:
        return f"<Cluster {self.cluster_id} v{self.version}: {len(self._nodes)} nodes, {len(self._partitions)} topics>"
