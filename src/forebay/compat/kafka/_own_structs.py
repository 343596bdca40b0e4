"""kafka-python's named tuples that its consumers take, too: its own classes where it is installed, else these."""

from __future__ import annotations

from typing import Any, NamedTuple

from forebay.compat._originals import original

__all__ = ["ConsumerGroupMetadata", "OffsetAndMetadata", "TopicPartition"]


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


def shared(name: str) -> Any:
    """The class of a name, kafka-python's if it is installed."""
    return original("kafka.structs", name, globals()[name])
