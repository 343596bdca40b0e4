"""A load in a few lines."""

from __future__ import annotations

from typing import Any

from forebay.tune.brokers import Brokers
from forebay.tune.described import described
from forebay.tune.workload import Stream, Workload


def test_a_load_and_its_cluster() -> None:
    load = Workload(rate=200, sizes=[5000, 12000], topics={"orders": 12})
    assert [*described(load, Brokers.alike(3))] == [
        ("load", "200 records/s, values of 5,000 and 12,000 B"),
        ("topics", "orders (12); 3 nodes, 1 producer"),
    ]


def test_what_is_much_is_shortened() -> None:
    streams = [Stream(rate=rate, topic="t0", keys={"count": 10}) for rate in (1, 2, 3)]  # type: ignore[arg-type]
    topics: Any = {f"t{number}": 1 for number in range(6)}
    found = [*described(Workload(streams, topics=topics, producers=2), Brokers())]
    assert [head for head, _ in found] == ["load", "", "", "topics"]
    assert found[0][1] == "1 records/s, values of 100 B, 10 keys, to t0"
    assert found[2][1] == "and 1 more"
    assert found[3][1] == "t0 (1), t1 (1), t2 (1), t3 (1) and 2 more; 1 node, 2 producers"
