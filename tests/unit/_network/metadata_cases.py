"""Metadata to try things on, and a ticket that counts."""

from __future__ import annotations

from forebay._network.metadata import Metadata, MetadataQuery
from forebay._protocol.metadata import MetadataResponse
from forebay._runtime.ticket import Ticket
from forebay.model import Node, TopicPartition
from forebay.model._cluster import Cluster

T0, T1 = TopicPartition("topic-1", 0), TopicPartition("topic-1", 1)


class Waker(Ticket):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def wake(self) -> None:
        self.count += 1


def metadata(
    *topics: str,
    backoff_ms: float = 100,
    backoff_max_ms: float = 1000,
    age_ms: float = 1000,
    idle_ms: float = 1e12,
    random: float = 0.5,
    seen: list[Cluster] | None = None,
) -> Metadata:
    """Back-off 100 up to 1000, age 1000, no jitter."""
    made = Metadata(
        refresh_backoff_ms=backoff_ms,
        refresh_backoff_max_ms=backoff_max_ms,
        max_age_ms=age_ms,
        max_idle_ms=idle_ms,
        random=lambda: random,
        on_update=[] if seen is None else [seen.append],
    )
    made.bootstrap([Node(-1, "boot", 9092)])
    for name in topics:
        made.add_topic(name, 0)
    return made


def update(
    target: Metadata, response: MetadataResponse, now: float = 0, *, version: int = 12, partial: bool | None = None
) -> MetadataQuery:
    query = target.next_query(now)
    if partial is not None:
        query = query._replace(partial=partial)
    target.update(query, response, version, now)
    return query
