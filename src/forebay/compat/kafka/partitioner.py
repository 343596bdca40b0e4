"""kafka-python's partitioners: the base class for those of programs, and its own two."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from forebay.compat.kafka._path import murmur2
from forebay.producer._frontend import key_partition, partition_random, system_surroundings

__all__ = ["DefaultPartitioner", "Partitioner", "StickyPartitioner", "murmur2"]


class Partitioner(ABC):
    """Chooses the partition of a record that names none."""

    @abstractmethod
    def partition(
        self, topic: str, key: Any, serialized_key: Any, value: Any, serialized_value: Any, cluster: Any
    ) -> int:
        """The partition's number; ``cluster`` has what ``ClusterView`` has."""


class DefaultPartitioner(Partitioner):
    """By the key's murmur2 as Java does; without a key a random partition, one with a leader if any has."""

    def __init__(self) -> None:
        self._draw = partition_random(system_surroundings().random)

    def partition(
        self, topic: str, key: Any, serialized_key: Any, value: Any, serialized_value: Any, cluster: Any
    ) -> int:
        """The partition's number.

        Raises:
            ValueError: the topic is not known.
        """
        if topic not in cluster.topics():
            raise ValueError(f"Topic {topic} not found in the cluster's metadata")
        every = sorted(cluster.partitions_for_topic(topic))
        if serialized_key is not None:
            chosen: int = every[key_partition(bytes(serialized_key), len(every))]
            return chosen
        usable: list[int] = sorted(cluster.available_partitions_for_topic(topic) or every)
        return usable[self._draw() % len(usable)]


class StickyPartitioner:
    """Asks for this package's own sticky partitions: by the key's murmur2, without a key by batches (KIP-794)."""
