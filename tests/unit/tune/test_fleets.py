"""A field of requests beside a simulation of all producers, and fleets that are more than the brokers can do."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.tune import Brokers, Costs, Outage, Stream, Workload, fleets, predict
from forebay.tune.fleets import phases_of, predicted, real_producers
from forebay.tune.prediction import Prediction
from tests.support.costs import NO_COSTS
from tests.unit.tune.traces import steady, trace_of

BUSY = Brokers.alike(2, rtt_ms=1, fixed_ms=2, per_mib_ms=3, handlers=2)


def simulated(load: Workload, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> tuple[Prediction, Prediction]:
    """By a field, and with all producers."""
    arguments: dict[str, Any] = {"costs": NO_COSTS, "seed": 1, "seconds": 4.0}
    field = predicted(load, BUSY, settings, **arguments)
    monkeypatch.setattr(fleets, "MOST_SIMULATED", 1000)
    return field, predicted(load, BUSY, settings, **arguments)


@pytest.mark.parametrize(("keys", "linger"), [(None, "20"), ({"count": 1000}, "10")])
def test_a_field_is_what_a_simulation_of_all_producers_says(
    monkeypatch: pytest.MonkeyPatch, keys: Any, linger: str
) -> None:
    load = Workload(rate=300, sizes=200, producers=12, topics={"t": 4}, keys=keys)
    field, every = simulated(load, monkeypatch, **{"linger.ms": linger})
    assert (field.fleet.producers, field.fleet.simulated, every.fleet.simulated) == (12, 4, 12)
    assert field.latency.p50 == pytest.approx(every.latency.p50, rel=0.05)
    assert field.latency.p99 == pytest.approx(every.latency.p99, rel=0.10)
    assert field.requests_s == pytest.approx(every.requests_s, rel=0.03)
    assert field.bytes_s == pytest.approx(every.bytes_s, rel=0.03)
    for one, other in zip(field.nodes, every.nodes, strict=True):
        assert one.busy == pytest.approx(other.busy, rel=0.08)
        assert one.records_s == pytest.approx(other.records_s, rel=0.08)


def test_handlers_that_are_always_busy_make_requests_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without linger 12 producers ask for half as much again as the handlers can do, and wait for each other."""
    load = Workload(rate=250, sizes=200, producers=12, topics={"t": 4}, keys={"count": 1000})
    field, every = simulated(load, monkeypatch, **{"linger.ms": "0"})
    assert min(node.busy for node in every.nodes) > 0.97
    assert min(node.busy for node in field.nodes) > 0.97
    assert field.served and every.served
    assert field.requests_s == pytest.approx(every.requests_s, rel=0.03)
    assert field.latency.p50 == pytest.approx(every.latency.p50, rel=0.05)
    assert field.latency.p99 == pytest.approx(every.latency.p99, rel=0.10)


def test_few_producers_are_simulated() -> None:
    assert [real_producers(Workload(rate=2000, producers=count), 10) for count in (1, 4, 5, 1000)] == [1, 4, 1, 1]
    assert real_producers(Workload(rate=700, producers=50), 10) == 3, "for enough records"
    assert real_producers(Workload(rate=700, batch_rows=10, producers=50), 100) == 3
    assert real_producers(Workload(rate=1, producers=50), 1) == 4
    assert real_producers(Workload(rate=5e-324, producers=50), 0.001) == 4


def test_what_it_assumes() -> None:
    found = predict(Workload(rate=4000, producers=30), seconds=6)
    assert found.assumptions[0] == "the requests of 29 producers are those of 1 that ran, at other times"
    assert (found.fleet.producers, found.fleet.simulated) == (30, 1)
    assert found.figures()["lost"] == 0
    assert sum(node.records_s for node in found.nodes) == pytest.approx(120_000, rel=0.05)
    assert not any("producers" in said for said in predict(Workload(rate=100, producers=2), seconds=1).assumptions)


def test_a_fleet_that_is_too_much_is_not_served_and_the_nearest_is_named() -> None:
    """Records of 50,000 B take 1.5 ms each: 200 producers with 20/s need twice as much as four handlers have."""
    brokers = Brokers.alike(2, fixed_ms=0.5, per_mib_ms=20, handlers=2)
    load = Workload(rate=40, sizes=50_000, producers=200, topics={"t": 8})
    found = predict(load, brokers=brokers, seconds=6)
    assert found.fleet.above_capacity == (1, 2) and not found.served
    assert found.fleet.served is not None and 40 < found.fleet.served < 200
    assert predict(load.of_producers(found.fleet.served), brokers=brokers, seconds=6).served


def test_loads_that_change_do_so_for_all_producers_at_once() -> None:
    brokers = Brokers()
    steady_load = phases_of(Workload(rate=10), brokers, 10)
    assert (steady_load.span_ms, steady_load.period_ms, steady_load.width_ms) == (10_000, 10_000, 10_000)
    burst: Any = {"on_ms": 20, "off_ms": 80}
    bursts = phases_of(Workload(rate=10, burst=burst), brokers, 10)
    assert (bursts.period_ms, bursts.width_ms) == (100, 5)
    steps = phases_of(Workload(rate=[[0, 10], [5, 100]]), brokers, 10)
    away = phases_of(Workload(rate=10), Brokers.alike(1, [Outage(node=1, seconds=(1, 2))]), 10)
    assert {(each.period_ms, each.width_ms) for each in (steps, away)} == {(10_000, 200)}
    mixed = phases_of(Workload([Stream(rate=1), Stream(rate=1, burst=burst)]), brokers, 10)
    assert (mixed.period_ms, mixed.width_ms) == (10_000, 5)


def test_producers_of_a_trace_begin_at_any_time() -> None:
    load = Workload.replaying(trace_of(*steady(100)), producers=9)
    phases = phases_of(load, Brokers(), 10)
    assert phases.width_ms == phases.span_ms
    found = predict(load, {"linger.ms": 5}, costs=Costs(), seconds=1)
    assert found.fleet.simulated == 4
    assert found.requests_s > 0


def test_a_silence_is_one_for_all_producers() -> None:
    brokers = Brokers.alike(2, [Outage(node=1, seconds=(1, 2))], handlers=2)
    found = predict(Workload(rate=500, producers=20, topics={"t": 4}), brokers=brokers, seconds=4)
    assert found.served
    assert found.latency.longest > 900
    assert found.outages[0].recovery_s is not None
