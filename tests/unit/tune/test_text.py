"""The text of a prediction: at most 40 lines, whatever there is to say."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.tune import predict
from forebay.tune.brokers import Brokers, Outage
from forebay.tune.goal import Goal
from forebay.tune.text import in_bytes, prediction_text
from forebay.tune.workload import Stream, Workload


def text(load: Workload, settings: dict[str, Any], brokers: Brokers, goal: Goal, seconds: float = 2) -> str:
    return prediction_text(predict(load, settings, brokers=brokers, seconds=seconds), load, brokers, goal)


def test_a_plain_load() -> None:
    found = text(Workload(rate=1000, topics={"orders": 3}), {"linger.ms": 5}, Brokers(), Goal(p99_ms=50))
    assert "load      1,000 records/s, values of 100 B\n" in found
    assert "topics    orders (3); 1 node, 1 producer\n" in found
    assert "settings  linger.ms=5\n" in found
    assert "goal      kept: p99_ms 50\n" in found
    assert "from the call" not in found
    assert "held" not in found
    assert "not served" not in found


def test_a_load_with_everything_that_can_be_said_has_at_most_40_lines() -> None:
    kinds: list[Any] = [
        {"rate": 4000, "sizes": {"median": 300, "sigma": 1, "most": 9000}},
        {"rate": [[0, 100], [1, 300]], "sizes": [1, 2, 3, 4], "keys": {"count": 10}, "topic": "a1"},
        {"rate": 900, "sizes": {5: 1, 6: 1}, "burst": {"on_ms": 100, "off_ms": 100}, "topic": "a2"},
        {"callers": "closed", "think_ms": 5, "threads": 2},
        {"rate": 3, "sizes": 2_000_000},
    ]
    load = Workload([Stream(**kind) for kind in kinds], topics={f"a{number}": 2 for number in range(9)}, producers=2)
    outages = [Outage(node=number, seconds=(0.5 + number / 10, 1.5)) for number in range(1, 7)]
    brokers = Brokers.alike(9, outages, quota=20_000)
    memory: dict[str, Any] = {"buffer.memory": 100_000, "batch.size": 1000, "max.block.ms": 100, "acks": "1"}
    memory |= {"max.request.size": 50_000, "enable.idempotence": False, "delivery.timeout.ms": 31_000}
    limits: Any = {"p50_ms": 0.1, "p99_ms": 0.1, "memory": 1, "lost": 0, "hold_ms": 0}
    found = text(load, memory, brokers, Goal(**limits))
    assert found.count("\n") <= 40
    assert max(map(len, found.splitlines())) <= 130
    for said in ("and 3 more", "and 5 more", "100 to 300 records/s", "10 keys", "to a1", "300 B in the median"):
        assert said in found
    assert "values of 1 and 2 and 3 B and others" in found
    for said in ("from the call of send", "held in send", "of send, the longest for", "nodes that are less busy"):
        assert said in found
    for said in ("outage    node 1 silent, 0.6 to 1.5 s", "lost      ", "not kept: p50_ms", "not served"):
        assert said in found


def test_bursts_and_closed_callers() -> None:
    burst: Any = {"on_ms": 100, "off_ms": 900}
    assert "1,000 records/s for 100 ms, none for 900 ms" in text(
        Workload(rate=1000, burst=burst), {}, Brokers(), Goal()
    )
    closed = Workload(callers="closed", think_ms=5, threads=2)
    assert "2 threads, 5 ms between calls, values of 100 B" in text(closed, {}, Brokers(), Goal())


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1536, "1.5 KiB"),
        (200_000, "195 KiB"),
        (5 << 20, "5.0 MiB"),
        (5 << 40, "5,120 GiB"),
    ],
)
def test_bytes(size: float, shown: str) -> None:
    assert in_bytes(size) == shown
