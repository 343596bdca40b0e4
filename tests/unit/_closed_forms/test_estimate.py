"""Closed forms beside a small simulation of what they describe, and beside figures that can be worked out by hand."""

from __future__ import annotations

import math

import pytest

from forebay._closed_forms.estimate import Estimate, estimate
from forebay._closed_forms.node import NodeCost, NodeLoad, Settings
from forebay.errors import IllegalArgumentError
from tests.support.examples import examples
from tests.unit._closed_forms.loads import Nodes, drawn
from tests.unit.tune.simulation import Measured, measured

FAST = NodeCost(rtt_ms=1.0, fixed_ms=0.4, per_mib_ms=3.0)
TOLERANCES = {"p50": 0.10, "p99": 0.20, "requests": 0.10, "fill": 0.10}
RANKS = (0.48, 0.49, 0.5, 0.51, 0.52)
"""The median of a run of so many records is anywhere near there."""
WITHIN = 0.95
"""Share of random loads that are within the tolerances; the others are near the limit of their slots."""


def errors(found: Estimate, run: Measured) -> dict[str, float]:
    """How far off each figure is, of what was measured."""
    medians = (found.latency.quantile(rank) / run.latency.p50 - 1 for rank in RANKS)
    return {
        "p50": min(medians, key=abs),
        "p99": found.latency.p99 / run.latency.p99 - 1,
        "requests": found.requests / run.requests - 1,
        "fill": found.fill / run.fill - 1,
    }


def records_for(nodes: Nodes, settings: Settings, found: Estimate) -> int:
    """Enough for some hundred requests, and for some hundred stays of the sticky partition."""
    largest = max(node.records_request for node in found.nodes)
    stays = 300 * settings.batch_size / nodes[0][0].size if len(nodes) > 1 else 0
    return int(min(60_000, max(12_000, 300 * largest, stays)))


ONE_SIZE = ((108.0, 1.0),)
LOADS: dict[str, tuple[Nodes, Settings]] = {
    "small records, linger 5": ([(NodeLoad(1000, ONE_SIZE), FAST)], Settings(5)),
    "linger 20": ([(NodeLoad(2000, ((208.0, 1.0),)), FAST)], Settings(20)),
    "keys, 60 partitions": ([(NodeLoad(2000, ((208.0, 1.0),), (1.0,) * 60), FAST)], Settings(20)),
    "keys, few partitions get most": (
        [(NodeLoad(2000, ((208.0, 1.0),), tuple(1 / (at + 1) for at in range(12))), FAST)],
        Settings(50),
    ),
    "full before linger ends": ([(NodeLoad(50_000, ONE_SIZE, partitions=12), FAST)], Settings(100)),
    "no linger, a slow handler": ([(NodeLoad(80, ONE_SIZE), NodeCost(0.5, 8.0))], Settings(0)),
    "no linger, one in flight": ([(NodeLoad(80, ONE_SIZE), NodeCost(0.5, 8.0))], Settings(0, in_flight=1)),
    "a long way": ([(NodeLoad(2000, ONE_SIZE, (1.0,) * 4), NodeCost(40.0, 0.5))], Settings(2, in_flight=3)),
    "three brokers, one slow, keys": (
        [(NodeLoad(700, ONE_SIZE, (1.0,) * 4), NodeCost(1.0, fixed)) for fixed in (0.4, 0.4, 3.0)],
        Settings(5),
    ),
    "two sizes, full batches": (
        [(NodeLoad(3000, ((5010.0, 0.5), (12010.0, 0.5)), partitions=12), FAST)],
        Settings(50, batch_size=65536),
    ),
    "a narrow wire": ([(NodeLoad(2000, ((2009.0, 1.0),), (1.0,) * 3), NodeCost(1.0, 0.2, 1.0, 6e6))], Settings(0)),
}


@pytest.mark.parametrize("name", LOADS)
def test_the_loads_that_one_meets(name: str) -> None:
    nodes, settings = LOADS[name]
    found = estimate(nodes, settings)
    assert found.used < 0.8
    off = errors(found, measured(nodes, settings, seed=1, records=records_for(nodes, settings, found)))
    assert all(abs(off[figure]) < most for figure, most in TOLERANCES.items()), off


@pytest.mark.sized
def test_random_loads_below_the_limit() -> None:
    tried, missed, seed = 0, [], 0
    while tried < examples(200):
        seed += 1
        nodes, settings = drawn(seed)
        found = estimate(nodes, settings)
        if found.used < 0.8:
            tried += 1
            off = errors(found, measured(nodes, settings, seed=1, records=records_for(nodes, settings, found)))
            if any(abs(off[figure]) > most for figure, most in TOLERANCES.items()):
                missed.append((seed, off))
    assert len(missed) <= max(1, (1 - WITHIN) * tried), missed


def test_two_sizes_in_turn_that_do_not_fit_together() -> None:
    sizes = ((5010.0, 0.5), (12010.0, 0.5))
    nodes = [(NodeLoad(200, sizes, in_turn=True, partitions=6), FAST)]
    found = estimate(nodes, Settings(20, batch_size=16384))
    assert found.records_batch == pytest.approx(1.0, rel=1e-6)
    assert found.fill == pytest.approx(0.523, abs=0.0005)
    assert found.requests == pytest.approx(118, rel=0.01)
    larger = estimate(nodes, Settings(20, batch_size=17200))
    assert larger.fill == pytest.approx(0.785, rel=0.02)
    assert larger.requests == pytest.approx(74, rel=0.04)
    assert larger.pool < 0.75 * found.pool
    assert estimate(nodes, Settings(20, batch_size=32768)).fill == pytest.approx(0.562, rel=0.06)


def test_a_lone_record_waits_for_linger_and_for_the_way() -> None:
    found = estimate([(NodeLoad(1, ONE_SIZE), NodeCost(2.0, 3.0))], Settings(5))
    assert found.requests == pytest.approx(1, rel=0.01)
    assert found.latency.p50 == pytest.approx(10.0, rel=0.01)
    assert found.records_batch == pytest.approx(1, abs=0.01)


def test_nodes_are_mixed_as_distributions() -> None:
    fast, slow = NodeCost(1.0, 0.1), NodeCost(100.0, 0.1)
    found = estimate([(NodeLoad(70, ONE_SIZE, (1.0,)), fast), (NodeLoad(30, ONE_SIZE, (1.0,)), slow)], Settings(0))
    assert found.latency.p50 < 2
    assert found.latency.p99 > 100


def test_parts_add_up_to_the_mean() -> None:
    for seed in range(40):
        nodes, settings = drawn(seed)
        for node in estimate(nodes, settings).nodes:
            parts = node.parts
            total = parts.linger + parts.slot + parts.line + parts.wire + parts.round_trip + parts.service
            assert node.overload or node.latency.mean == pytest.approx(total, rel=0.01)


def test_too_much_is_said_to_be_too_much() -> None:
    found = estimate([(NodeLoad(10_000, ((16_000.0, 1.0),)), NodeCost(1.0, 1.0, per_mib_ms=30.0))], Settings(5))
    assert found.overload and found.nodes[0].overload
    assert math.isinf(found.latency.p50)
    assert found.nodes[0].capacity < 10_000


def test_more_in_flight_than_enough_buys_no_rate() -> None:
    load, cost = NodeLoad(2000, ONE_SIZE, (1.0,) * 4), NodeCost(20.0, 0.2)
    requests = [estimate([(load, cost)], Settings(5, in_flight=count)).requests for count in (1, 8, 13)]
    assert requests[0] < requests[1]
    assert requests[1] == pytest.approx(requests[2], rel=0.02)


def test_others_at_the_handlers_cost_time() -> None:
    load = NodeLoad(100, ONE_SIZE)
    alone = estimate([(load, NodeCost(1.0, 5.0, handlers=2))], Settings(0, in_flight=1))
    beside = estimate([(load, NodeCost(1.0, 5.0, handlers=2, others_busy=0.8))], Settings(0, in_flight=1))
    assert beside.latency.p99 > alone.latency.p99 + 5


def test_compression_makes_room_and_saves_bytes() -> None:
    load = NodeLoad(50_000, ONE_SIZE, partitions=12)
    plain = estimate([(load, FAST)], Settings(100))
    packed = estimate([(load, FAST)], Settings(100, compression="zstd", compression_ratio=0.25))
    assert packed.records_batch > 3 * plain.records_batch
    assert packed.bytes < 0.3 * plain.bytes


def test_no_load_is_refused() -> None:
    with pytest.raises(IllegalArgumentError, match="rate must be above 0"):
        estimate([(NodeLoad(0, ONE_SIZE), FAST)], Settings())


def test_the_others_of_a_fleet_keep_handlers_busy() -> None:
    """100 producers of 143 requests/s, each of 0.4 ms, need three quarters of eight handlers."""
    nodes = [(NodeLoad(1000, ONE_SIZE), NodeCost(rtt_ms=1.0, fixed_ms=0.4))]
    one, many, most = (estimate(nodes, Settings(6), count) for count in (1, 100, 1000))
    assert many.requests == pytest.approx(100 * one.requests) and many.bytes == pytest.approx(100 * one.bytes)
    assert many.pool >= one.pool
    assert one.latency.p999 < many.latency.p999 < most.latency.p999 < math.inf
