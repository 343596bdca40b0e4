"""Metadata responses as our decoder gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forebay._protocol.metadata import MetadataPartition, MetadataResponse, MetadataTopic
from forebay.model import Node

NODES = (Node(1, "host1", 9092), Node(2, "host2", 9092), Node(3, "host3", 9092))


def partition(
    number: int, leader: int = 1, epoch: int = -1, *, isr: Sequence[int] = (1, 2, 3), error: int = 0
) -> MetadataPartition:
    return MetadataPartition(error, number, leader, epoch, (1, 2, 3), tuple(isr), ())


def topic(name: str, *partitions: MetadataPartition, error: int = 0, topic_id: bytes | None = None) -> MetadataTopic:
    return MetadataTopic(error, name, topic_id, False, partitions)


def reply(
    *topics: MetadataTopic,
    nodes: Sequence[Node] = NODES,
    cluster_id: str | None = "dummy",
    counts: Mapping[str, int] | None = None,
    epoch: int = -1,
) -> MetadataResponse:
    """``counts`` makes topics of that many partitions, led by 1, 2, 3 in turn."""
    made = [
        topic(name, *(partition(number, NODES[number % 3].id, epoch) for number in range(count)))
        for name, count in (counts or {}).items()
    ]
    return MetadataResponse(0, tuple(nodes), cluster_id, 1, (*topics, *made), 0)
