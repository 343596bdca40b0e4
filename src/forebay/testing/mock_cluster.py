"""The cluster of a MockProducer: its topics, where a record goes, and what was sent and committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from forebay._accumulator.partitioner import key_partition
from forebay.errors import IllegalArgumentError, UnknownTopicOrPartitionError
from forebay.model import Node, OffsetAndMetadata, PartitionInfo, ProducerRecord, TopicPartition
from forebay.model._cluster import Cluster
from forebay.model._wire import check_topic
from forebay.testing.records import ReadRecord

NODE = Node(1, "mock", 9092)
Offsets = dict[str, dict[TopicPartition, OffsetAndMetadata]]
"""By consumer group."""


class Sent(NamedTuple):
    """A record as it was given, and as it would be in the log."""

    given: ProducerRecord
    kept: ReadRecord


class MockCluster:
    """What a broker would know, kept by the mock itself.

    Args:
        partitions: how many a topic has: the same for all, or by name; then other topics are unknown.
        partitioner: the user's own, if there is one.
        ignore_keys: as ``partitioner.ignore.keys``.

    Raises:
        IllegalArgumentError: a topic would have no partition.
    """

    def __init__(self, partitions: int | Mapping[str, int], partitioner: Any, *, ignore_keys: bool) -> None:
        counts = partitions.values() if isinstance(partitions, Mapping) else [partitions]
        if any(count < 1 for count in counts):
            raise IllegalArgumentError(f"partitions must be at least 1, not {partitions!r}")
        self._counts = partitions
        self._partitioner = partitioner
        self._ignore_keys = ignore_keys
        self._ends: Counter[TopicPartition] = Counter()
        self.sent: list[Sent] = []
        self.uncommitted: list[Sent] = []
        """Of the open transaction, as ``uncommitted_offsets``."""
        self.offsets: list[Offsets] = []
        """Of each committed transaction that has some."""
        self.uncommitted_offsets: Offsets = {}

    def count(self, topic: str) -> int:
        """How many partitions a topic has.

        Raises:
            InvalidTopicError: Kafka forbids the name.
            UnknownTopicOrPartitionError: there is no such topic.
        """
        check_topic(topic)
        if not isinstance(self._counts, Mapping):
            return self._counts
        if topic not in self._counts:
            known = ", ".join(self._counts) or "none"
            raise UnknownTopicOrPartitionError(f"MockProducer has no topic {topic!r}; there are {known}")
        return self._counts[topic]

    def partitions(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The partitions of a topic.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic.
        """
        count = self.count(topic)
        return tuple(PartitionInfo(topic, number, NODE, 0, (NODE.id,), (NODE.id,)) for number in range(count))

    def partition_of(self, record: ProducerRecord, key: bytes | None, value: bytes | None) -> int:
        """Where the record goes; ``key`` and ``value`` are its bytes.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic or partition.
        """
        count = self.count(record.topic)
        if record.partition is not None:
            if record.partition < count:
                return record.partition
            raise UnknownTopicOrPartitionError(
                f"Topic {record.topic} has {count} partitions, none is {record.partition}", topic=record.topic
            )
        if self._partitioner is not None:
            cluster = Cluster([NODE], self.partitions(record.topic))
            chosen: int = self._partitioner.partition(record.topic, record.key, key, record.value, value, cluster)
            return chosen
        return 0 if key is None or self._ignore_keys else key_partition(key, count)

    def next_offset(self, where: TopicPartition) -> int:
        """The offset of the partition's next record; each call gives another one."""
        offset = self._ends[where]
        self._ends[where] += 1
        return offset

    def end_transaction(self, *, commit: bool) -> None:
        """Makes what is uncommitted a part of what was sent, or forgets it."""
        if commit:
            self.sent += self.uncommitted
            if self.uncommitted_offsets:
                self.offsets.append(self.uncommitted_offsets)
        self.uncommitted = []
        self.uncommitted_offsets = {}

    def clear(self) -> None:
        """Forgets what was sent and committed; offsets go on."""
        self.sent.clear()
        self.offsets.clear()
        self.end_transaction(commit=False)
