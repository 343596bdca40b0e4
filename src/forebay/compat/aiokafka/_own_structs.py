"""aiokafka's named tuples that its consumers take, too: its own classes where it is installed, else these."""

from __future__ import annotations

from typing import Any, NamedTuple

from forebay.compat._originals import original

__all__ = ["OffsetAndMetadata", "TopicPartition"]


class TopicPartition(NamedTuple):
    """A topic's name and the number of one of its partitions; equal to any tuple of the same two."""

    topic: str
    partition: int


class OffsetAndMetadata(NamedTuple):
    """The next offset to be read, and a text that is committed with it."""

    offset: int
    metadata: str


def shared(name: str) -> Any:
    """The class of a name, aiokafka's if it is installed."""
    return original("aiokafka.structs", name, globals()[name])
