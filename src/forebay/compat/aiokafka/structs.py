"""The values that aiokafka's users meet, with its fields in its order."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["OffsetAndMetadata", "RecordMetadata", "TopicPartition"]


class TopicPartition(NamedTuple):
    """A topic's name and the number of one of its partitions; equal to any tuple of the same two."""

    topic: str
    partition: int


class OffsetAndMetadata(NamedTuple):
    """The next offset to be read, and a text that is committed with it."""

    offset: int
    metadata: str


class RecordMetadata(NamedTuple):
    """Where a record went.

    ``offset`` is -1 where the broker does not tell it.  ``timestamp`` is in Unix ms, and ``timestamp_type`` 1 if the
    broker set it, else 0.  ``log_start_offset`` is None: this client does not keep it.
    """

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int | None
    timestamp_type: int
    log_start_offset: int | None
