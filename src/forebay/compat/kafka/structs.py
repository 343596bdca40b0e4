"""kafka-python's named tuples: places, offsets, groups, and where a record went."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ConsumerGroupMetadata", "OffsetAndMetadata", "RecordMetadata", "TopicPartition"]


class TopicPartition(NamedTuple):
    """A topic's name and one of its partitions."""

    topic: str
    partition: int


class OffsetAndMetadata(NamedTuple):
    """A position in a partition, for ``send_offsets_to_transaction``; ``leader_epoch`` is -1 if it is not known."""

    offset: int | None = None
    metadata: str = ""
    leader_epoch: int = -1


class ConsumerGroupMetadata(NamedTuple):
    """A consumer's membership in its group; ``state`` is for the consumer's owner alone."""

    group_id: str | None = None
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    state: str = "<unjoined>"


class RecordMetadata(NamedTuple):
    """Where a record went.

    ``offset`` is -1 where the broker does not tell it; ``timestamp`` is in Unix ms; ``checksum`` is None, for the
    message format has none; sizes are in bytes, -1 for a null key, a null value, or no headers.
    """

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int
    checksum: None
    serialized_key_size: int
    serialized_value_size: int
    serialized_header_size: int
