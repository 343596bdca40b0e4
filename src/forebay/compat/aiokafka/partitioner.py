"""aiokafka's default partitioner, for programs that name it."""

from __future__ import annotations

from collections.abc import Sequence

from forebay.producer._frontend import key_partition, partition_random, system_surroundings

__all__ = ["DefaultPartitioner"]


class DefaultPartitioner:
    """By murmur2 of the key, as the Java client; without a key any partition, one with a leader if there is one.

    ``AIOKafkaProducer`` takes an instance of this class itself for the native partitioner, which puts records without
    a key into one partition until its batch is full.
    """

    def __init__(self) -> None:
        self._draw = partition_random(system_surroundings().random)

    def __call__(self, key: bytes | None, all_partitions: Sequence[int], available: Sequence[int]) -> int:
        """One of the partitions."""
        if key is not None:
            return all_partitions[key_partition(key, len(all_partitions))]
        choices = available or all_partitions
        return choices[self._draw() % len(choices)]
