"""_insight.text: a description as lines."""

from __future__ import annotations

from dataclasses import replace

from forebay._insight.text import MOST_PARTITIONS, as_text
from forebay._insight.values import (
    IdentityDescription,
    MemoryDescription,
    NodeDescription,
    PartitionDescription,
    ProducerDescription,
)

PARTITION = PartitionDescription("orders", 3, 1, 2, 100, 5000, 0.25, 1, 61_000.4, 2, "NetworkError: lost")
SEEN = ProducerDescription(
    client_id="me",
    process=7,
    time_ms=1_700_000_000_000,
    uptime_ms=90_000,
    state="open",
    unfinished=110,
    topics=(),
    partitions=(PARTITION, PartitionDescription("orders", 4, -1, 0, 0, 0, 0.0, 1, 0.0, 0, None)),
    idle_partitions=6,
    memory=MemoryDescription(1000, -24, ((1, 200), (-1, 300)), ((1, 900), (-1, 124))),
    nodes=(
        NodeDescription(-1, "b:1", "DISCONNECTED", 0, 0.0, 0, None),
        NodeDescription(1, "a:9092", "CONNECTING", 2, 30.0, 4, "DisconnectError: gone"),
    ),
    identity=IdentityDescription(12, 3, "IN_TRANSACTION", "t", "TimeoutError: late"),
    metrics={},
)


def test_all_of_it() -> None:
    assert as_text(SEEN).splitlines() == [
        "Producer me (process 7), open, 90 s old: 110 record(s) without an outcome in 2 partition(s), 6 idle",
        (
            "  orders-3 (leader 1): 2 batch(es) wait with 100 record(s), 5000 bytes, the oldest 61000 ms old; "
            "1 in flight; sent 2 time(s); last error: NetworkError: lost"
        ),
        "  orders-4 (no leader known): 0 batch(es) wait; 1 in flight",
        (
            "  memory: -24 of 1000 bytes available, 2 thread(s) wait for 500 bytes; held: node 1 900, partitions "
            "without a leader 124"
        ),
        "  bootstrap server 1 at b:1: DISCONNECTED, 0 request(s) in flight",
        (
            "  node 1 at a:9092: CONNECTING, 2 request(s) in flight, throttled for 30 ms, 4 failed attempt(s) to "
            "connect; last error: DisconnectError: gone"
        ),
        "  producer id 12, epoch 3, IN_TRANSACTION, transactional.id t; error: TimeoutError: late",
    ]


def test_the_rest_of_many_partitions_is_a_number() -> None:
    lines = as_text(replace(SEEN, partitions=(PARTITION,) * (MOST_PARTITIONS + 5), identity=None)).splitlines()
    assert lines[MOST_PARTITIONS + 1] == "  and 5 more partition(s)"
    assert lines[-1].startswith("  node 1")
