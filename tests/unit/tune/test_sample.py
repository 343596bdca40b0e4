"""What closed forms get of a load is what the simulation sends."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from forebay._closed_forms.node import NodeRequests, Settings
from forebay._closed_forms.phases import estimate_phases
from forebay.tune import Broker, Brokers, Workload, predict, span, steps
from forebay.tune.sample import Sample, leaders_of, node_loads, phases_of, scaled, slowed
from forebay.tune.workload import Burst, Stream


def test_keyless_records_are_spread_over_the_nodes_by_their_partitions() -> None:
    loads, numbers = node_loads(Workload(rate=900, topics={"t": 3}), Brokers.alike(2))
    assert numbers == [1, 2]
    assert [load.rate for load, _ in loads] == pytest.approx([600, 300])
    assert [(load.partition_shares, load.partitions) for load, _ in loads] == [(None, 2), (None, 1)]


def test_keys_decide_the_shares() -> None:
    """As the producer chooses partitions: the same key goes to the same one."""
    loads, numbers = node_loads(Workload(rate=1000, keys={"count": 1}, topics={"t": 6}), Brokers.alike(3))
    ((load, _),) = loads
    assert load.rate == pytest.approx(1000) and load.partition_shares == pytest.approx((1000,))
    assert len(numbers) == 1


def test_partitions_that_the_caller_names() -> None:
    loads, _ = node_loads(Workload(rate=1000, partitions=(3, 1), topics={"t": 2}), Brokers.alike(2))
    assert [load.rate for load, _ in loads] == pytest.approx([750, 250], rel=0.05)


def test_each_topic_without_keys_has_a_batch_of_its_own() -> None:
    ((load, _),), _ = node_loads(Workload(rate=100, topics={"a": 1, "b": 1}), Brokers.alike(1))
    assert load.partition_shares == pytest.approx((50, 50))


def test_sizes_in_turn_are_told_apart_from_a_mix() -> None:
    ((turn, _),), _ = node_loads(Workload(rate=100, sizes=[5000, 12_000], topics={"t": 1}), Brokers())
    ((mix, _),), _ = node_loads(Workload(rate=100, sizes={5000: 1, 12_000: 1}, topics={"t": 1}), Brokers())
    assert turn.in_turn and [size for size, _ in turn.sizes] == [5009, 12_011]
    assert dict(turn.sizes) == pytest.approx({5009: 0.5, 12_011: 0.5})
    assert not mix.in_turn
    assert dict(mix.sizes) == pytest.approx({5009: 0.5, 12_011: 0.5}, rel=0.05)


def test_a_mix_is_packed_by_its_shares() -> None:
    """Two sizes are not in turn because they are two: many of the small one come before the next large one."""
    ((mix, cost),), _ = node_loads(Workload(rate=1000, sizes={100: 0.9, 12_000: 0.1}, topics={"t": 1}), Brokers())
    packing = NodeRequests(mix, cost, Settings(linger_ms=1000), mix.rate).packing
    chance = random.Random(1)
    room, left, batches = 16_384 - 61, 0, 0
    for _ in range(20_000):
        size = 109 if chance.random() < 0.9 else 12_011
        if size > left:
            left, batches = room, batches + 1
        left -= size
    assert not mix.in_turn and packing.mean == pytest.approx(20_000 / batches, rel=0.05)
    assert packing.mean > 9


def test_sizes_in_turn_keep_their_order() -> None:
    def sizes(**load: Any) -> list[float] | None:
        ((node, _), *_more), _ = node_loads(Workload(rate=100, **{"topics": {"t": 1}, **load}), Brokers())
        return [size for size, _share in node.sizes] if node.in_turn else None

    assert sizes(sizes=[5000, 100, 100]) == [5009, 109, 109]
    assert sizes(sizes=[100]) is None and sizes(sizes=[100, 100]) is None
    assert sizes(sizes=[100, 200], keys={"count": 9}) is None
    assert sizes(sizes=[100, 200], partitions=(1, 1), topics={"t": 2}) is None
    assert sizes(sizes=[100, 200], topics={"a": 1, "b": 1}) is None  # one topic gets all that are large
    assert sizes(sizes=[100, 200, 300, 400, 500]) is None


@pytest.mark.parametrize("arrivals", ["regular", "poisson"])
def test_tables_that_come_seldom_are_counted(arrivals: str) -> None:
    load = Workload(rate=1000, batch_rows=1_000_000, arrivals=arrivals, topics={"t": 2})
    nodes, _ = node_loads(load, Brokers.alike(2))
    assert [node.rate for node, _cost in nodes] == pytest.approx([500, 500])


def test_many_sizes_are_put_into_few_steps_with_the_same_mean() -> None:
    load = Workload(rate=100, sizes={"median": 300, "sigma": 1, "most": 9000}, topics={"t": 1})
    ((node, _),), _ = node_loads(load, Brokers())
    sample = Sample()
    sample.count(load, load.streams[0], 0)
    whole = sum(size * weight for size, weight in sample._sizes.items()) / sum(sample._sizes.values())
    assert len(node.sizes) <= 41
    assert sum(share for _, share in node.sizes) == pytest.approx(1)
    assert node.size == pytest.approx(whole)


def test_times_of_a_node() -> None:
    others: Any = {"rate": 800, "size": 0}
    broker = Broker(rtt_ms=2, fixed_ms=1, replication_ms=5, per_mib_ms=3, bandwidth=1e6, handlers=4, others=others)
    ((_, cost),), _ = node_loads(Workload(rate=1, topics={"t": 1}), Brokers((broker,)))
    assert (cost.rtt_ms, cost.fixed_ms, cost.per_mib_ms, cost.bandwidth) == (2, 6, 3, 1e6)
    assert cost.handlers == 4 and cost.others_busy == pytest.approx(0.2)


def test_leaders_are_in_turn_over_all_topics() -> None:
    load = Workload(rate=1, topics={"a": 2, "b": 2})
    assert leaders_of(load, 3) == {("a", 0): 1, ("a", 1): 2, ("b", 0): 3, ("b", 1): 1}


def test_many_nodes_that_get_nearly_the_same_are_looked_at_once() -> None:
    load = Workload(rate=1000, keys={"count": 20_000}, topics={"t": 1000})
    nodes, numbers = node_loads(load, Brokers.alike(100))
    assert len(nodes) == 100 and numbers == [*range(1, 101)]
    assert len(set(nodes)) < 12
    assert sum(each.rate for each, _cost in nodes) == pytest.approx(1000)
    assert all(sum(each.partition_shares or ()) == pytest.approx(each.rate) for each, _cost in nodes)
    slow = Brokers((*Brokers.alike(99).nodes, Broker(fixed_ms=50.0)))
    assert [cost.fixed_ms for _load, cost in node_loads(load, slow)[0]].index(50.0) == 99
    few, _numbers = node_loads(load, Brokers.alike(10))
    assert len(set(few)) == 10


def test_more_records_and_a_slower_node() -> None:
    nodes, _ = node_loads(Workload(rate=900, topics={"t": 3}), Brokers.alike(3))
    assert [load.rate for load, _ in scaled(nodes, 2.0)] == pytest.approx([600] * 3)
    assert [(cost.fixed_ms, cost.per_mib_ms) for _, cost in slowed(nodes, 1, 2.0)] == [
        (0.5, 3.0),
        (1.0, 6.0),
        (0.5, 3.0),
    ]


def test_a_load_without_bursts_has_one_phase() -> None:
    load = Workload(rate=900, topics={"t": 3})
    (phase,), numbers = phases_of(load, Brokers.alike(2))
    assert (list(phase.nodes), numbers) == node_loads(load, Brokers.alike(2))
    assert (phase.share, phase.ms) == (1, math.inf)


def test_bursts_and_what_comes_between_them() -> None:
    """Nodes keep their places though only the bursts go to some of them."""
    steady = Stream(rate=100.0, topic="a")
    bursts = Stream(rate=900.0, topic="b", burst=Burst(20, 80))
    (loud, quiet), numbers = phases_of(Workload([steady, bursts], topics={"a": 1, "b": 1}), Brokers.alike(2))
    assert numbers == [1, 2]
    assert [load.rate for load, _ in loud.nodes] == pytest.approx([100, 900])
    assert [load.rate for load, _ in quiet.nodes] == pytest.approx([100, 0])
    assert (loud.share, loud.ms, quiet.share) == pytest.approx((0.2, 20, 0.8))


@pytest.mark.parametrize("rate", [[[0, 500], [60, 8000]], [[0, 0], [60, 8000]], [[0, 8000], [5, 100]]])
def test_each_step_of_a_rate_is_a_phase(rate: list[list[float]]) -> None:
    load, brokers = Workload(rate=rate, sizes=200, topics={"t": 6}), Brokers.alike(3)
    phases, _ = phases_of(load, brokers)
    whole = span(load, brokers)
    assert [round(phase.rate) for phase in phases] == [rate for _second, rate in rate if rate]
    assert sum(phase.share * phase.rate for phase in phases) == pytest.approx(steps.rate_over(load, whole), rel=0.01)
    found, simulated = estimate_phases(phases, Settings()), predict(load, brokers=brokers)
    assert found.requests == pytest.approx(simulated.requests_s, rel=0.1)
    assert found.latency.p50 == pytest.approx(simulated.latency.p50, rel=0.1)
