"""Where messages without a key go, by partitioner; the rest of the way is tried through Producer."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.compat import confluent_kafka
from tests.fakes.world import World
from tests.unit.compat.test_confluent_kafka import Events, ours


@pytest.mark.parametrize(
    ("partitioner", "kind"),
    [
        ("random", "sticky"),
        ("consistent", "consistent"),
        ("consistent_random", "sticky"),
        ("murmur2", "murmur2"),
        ("murmur2_random", "sticky"),
        ("fnv1a", "fnv1a"),
        ("fnv1a_random", "sticky"),
    ],
)
def test_messages_without_a_key(partitioner: str, kind: str) -> None:
    world, events = World(topics={"test": 8}), Events()
    producer = ours(world, partitioner=partitioner, on_delivery=events)
    for _ in range(60):
        producer.produce("test", b"v")
    world.settle(20)
    producer.poll(0)
    used: set[Any] = {message.partition() for _, message in events}
    assert len(events) == 60 and len(used) == 1
    if kind != "sticky":
        assert used == {getattr(confluent_kafka, kind)(b"", 8)}
