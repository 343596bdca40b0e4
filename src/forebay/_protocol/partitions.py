"""Partitions grouped by topic, as transactional messages have them, and their error codes in the responses."""

from __future__ import annotations

from collections.abc import Iterable

from forebay._protocol.primitives import Reader
from forebay.model import TopicPartition


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers by topic, both in the order of first appearance."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped


def read_partition_errors(reader: Reader, *, flexible: bool) -> dict[TopicPartition, int]:
    """The array of topics, each with its partitions and their error codes (0: none).

    Raises:
        ProtocolError: the bytes make no sense.
    """
    errors: dict[TopicPartition, int] = {}
    topic = ""

    def partition() -> None:
        number = reader.int32()
        errors[TopicPartition(topic, number)] = reader.int16()
        reader.tags()

    def topics() -> None:
        nonlocal topic
        topic = reader.string()
        reader.array(partition, 7 if flexible else 6)
        reader.tags()

    reader.array(topics, 3 if flexible else 6)
    return errors
