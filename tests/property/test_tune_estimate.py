"""Closed forms for any load: nothing negative, nothing that is no number, and what more of something never does."""

from __future__ import annotations

import math
from dataclasses import astuple, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from forebay._closed_forms.estimate import Estimate, estimate
from forebay._closed_forms.node import NodeCost, NodeLoad, Settings
from forebay.tune.outages import Outage, through
from tests.property.profile import seeded

ROUNDING = 1.0001

rates = st.floats(0.01, 1e6)
sizes = st.lists(st.tuples(st.floats(10, 3e6), st.floats(0.01, 1)), min_size=1, max_size=5).map(tuple)
loads = st.builds(
    NodeLoad,
    rate=rates,
    sizes=sizes,
    partition_shares=st.none() | st.lists(st.floats(1e-6, 1), min_size=1, max_size=40).map(tuple),
    in_turn=st.booleans(),
    partitions=st.integers(1, 100),
)
costs = st.builds(
    NodeCost,
    rtt_ms=st.floats(0, 300),
    fixed_ms=st.floats(0, 100),
    per_mib_ms=st.floats(0, 100),
    bandwidth=st.floats(1e4, 1e10) | st.just(math.inf),
    handlers=st.integers(1, 16),
    others_busy=st.floats(0, 0.95),
)
settings = st.builds(
    Settings,
    linger_ms=st.sampled_from((0.0, 0.1, 1.0, 5.0, 100.0, 10_000.0)) | st.floats(0, 1000),
    batch_size=st.integers(1, 1 << 22),
    in_flight=st.integers(1, 10),
    compression_ratio=st.floats(0.05, 1),
    buffer_memory=st.integers(1 << 14, 1 << 30),
)
nodes = st.lists(st.tuples(loads, costs), min_size=1, max_size=4)


def numbers(value: Any) -> list[float]:
    """All of them, at any depth."""
    if isinstance(value, int | float):
        return [float(value)]
    return [number for part in value for number in numbers(part)] if isinstance(value, tuple) else []


def checked(found: Estimate) -> Estimate:
    """The estimate, if each number in it can be one."""
    for number in numbers(astuple(found)):
        assert number >= 0, found
    for node in found.nodes:
        assert 0 < node.fill <= 1 and 0 <= node.used <= 1
        assert node.records_batch >= 1 / ROUNDING and node.records_request >= node.records_batch / ROUNDING
        assert node.requests * node.records_request <= node.rate * ROUNDING
        assert node.overload or math.isfinite(node.latency.p999)
        assert list(node.latency.points) == sorted(node.latency.points)
    return found


@seeded(150)
@given(nodes, settings, st.floats(0, 1e6))
def test_nothing_is_negative_or_no_number(some: list[tuple[NodeLoad, NodeCost]], made: Settings, away: float) -> None:
    found = checked(estimate(some, made))
    outage = through(Outage((0,), away, 100, 50), found, made)
    assert all(number >= 0 for number in numbers(astuple(outage)))


@seeded(80)
@given(loads, costs, settings, st.floats(1.1, 10))
def test_more_linger_makes_no_more_requests(load: NodeLoad, cost: NodeCost, made: Settings, more: float) -> None:
    short = checked(estimate([(load, cost)], made))
    long = checked(estimate([(load, cost)], replace(made, linger_ms=made.linger_ms * more)))
    assert long.requests <= short.requests * 1.03


@seeded(80)
@given(loads, costs, settings, st.integers(2, 16))
def test_larger_batches_hold_no_fewer_records(load: NodeLoad, cost: NodeCost, made: Settings, more: int) -> None:
    alone = replace(load, sizes=load.sizes[:1])
    small = checked(estimate([(alone, cost)], made))
    large = checked(estimate([(alone, cost)], replace(made, batch_size=made.batch_size * more)))
    assert large.records_batch >= small.records_batch * 0.97
    assert large.nodes[0].capacity >= small.nodes[0].capacity / ROUNDING


@seeded(80)
@given(loads, costs, settings, st.floats(1.1, 10))
def test_a_slower_broker_is_never_faster(load: NodeLoad, cost: NodeCost, made: Settings, more: float) -> None:
    fast = checked(estimate([(load, cost)], made))
    slow = checked(estimate([(load, replace(cost, rtt_ms=cost.rtt_ms * more + 1))], made))
    assert slow.latency.p50 >= fast.latency.p50 * 0.97
    assert slow.requests <= fast.requests * 1.03
