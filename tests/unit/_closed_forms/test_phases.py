"""Closed forms of loads that come in bursts, beside the simulation of the same loads."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from forebay._closed_forms.estimate import estimate
from forebay._closed_forms.node import NodeCost, NodeLoad, Settings
from forebay._closed_forms.phases import Phase, estimate_phases
from forebay.tune import Brokers, Workload, predict
from forebay.tune.sample import phases_of
from forebay.tune.workload import Burst, Stream

BURST = Burst(100, 400)
BROKERS = Brokers.alike(3)
NODE = (NodeLoad(1000, ((108.0, 1.0),)), NodeCost(1.0, 0.4, per_mib_ms=3.0))
NEAR: Any = {"rel": 0.2, "abs": 1}
LOADS = {
    "without keys": Workload(rate=10_000, sizes=200, burst=BURST),
    "with keys": Workload(rate=5000, sizes=200, keys={"count": 1000}, burst=BURST),
    "beside a stream that is steady": Workload([Stream(rate=1000.0), Stream(rate=10_000.0, burst=BURST)]),
}
SETTINGS = {
    "the defaults": {},
    "batches that are full": {"linger.ms": 20},
    "a batch for each burst": {"linger.ms": 50, "batch.size": 1 << 18},
    "a linger longer than the burst": {"linger.ms": 200, "batch.size": 1 << 20},
}


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_bursts_are_what_the_simulation_says(load: Workload, options: dict[str, int]) -> None:
    phases, _ = phases_of(load, BROKERS)
    given: Any = {"linger_ms": options.get("linger.ms", 5), "batch_size": options.get("batch.size", 16384)}
    found = estimate_phases(phases, Settings(**given))
    run = predict(load, options, brokers=BROKERS, seconds=5, seed=3).figures()
    assert found.latency.p50 == pytest.approx(run["p50_ms"], **NEAR)
    assert found.latency.p99 == pytest.approx(run["p99_ms"], **NEAR)
    assert found.requests == pytest.approx(run["requests"], **NEAR)
    rate = sum(stream.mean_rate for stream in load.streams)
    assert math.fsum(node.rate for node in found.nodes) == pytest.approx(rate)
    assert math.fsum(node.requests for node in found.nodes) == pytest.approx(found.requests)


def test_a_load_that_does_not_change_is_estimated_as_it_is() -> None:
    assert estimate_phases([Phase([NODE])], Settings()) == estimate([NODE], Settings())


def test_a_burst_of_more_than_a_node_takes_waits_for_what_came_before() -> None:
    capacity = estimate([NODE], Settings()).nodes[0].capacity
    load = replace(NODE[0], rate=2 * capacity)
    found = estimate_phases([Phase([(load, NODE[1])], share=0.2, ms=1000)], Settings())
    assert not found.overload
    assert 1000 < found.latency.p99 < 1200
    assert found.pool > capacity * 108
    assert found.requests < 0.5 * found.nodes[0].capacity
    # With no time between the bursts it never ends.
    assert estimate_phases([Phase([(load, NODE[1])], share=0.9, ms=1000)], Settings()).overload


def test_a_node_that_gets_nothing_for_a_time_keeps_its_place() -> None:
    silent = (replace(NODE[0], rate=0.0), NODE[1])
    loud = Phase([NODE, NODE], share=0.25, ms=100)
    found = estimate_phases([loud, Phase([silent, NODE], share=0.75)], Settings())
    assert [node.rate for node in found.nodes] == pytest.approx([250, 1000])
    assert estimate_phases([loud, Phase([silent, silent], share=0.75)], Settings()).nodes[0].rate == 250
