"""The values that aiokafka's users meet, with its fields in its order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forebay.compat.aiokafka import _own_structs

__all__ = ["OffsetAndMetadata", "RecordMetadata", "TopicPartition"]


if TYPE_CHECKING:
    from forebay.compat.aiokafka._own_structs import OffsetAndMetadata, TopicPartition
else:

    def __getattr__(name: str) -> object:
        if name not in _own_structs.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, _own_structs.shared(name))


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
