"""kafka-python's named tuples: places, offsets, groups, and where a record went."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forebay.compat.kafka import _own_structs

__all__ = ["ConsumerGroupMetadata", "OffsetAndMetadata", "RecordMetadata", "TopicPartition"]

if TYPE_CHECKING:
    from forebay.compat.kafka._own_structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
else:

    def __getattr__(name: str) -> object:
        if name not in _own_structs.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, _own_structs.shared(name))


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
