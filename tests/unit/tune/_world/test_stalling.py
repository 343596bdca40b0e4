"""Stalling: how long threads of a simulated producer wait for their machine."""

from __future__ import annotations

from random import Random

import pytest

from forebay.tune import Brokers, Costs, Stalls, Stream, Workload, predict
from forebay.tune._world.stalling import Stalling
from tests.support.costs import NO_COSTS

SEEN = Stalls(seconds=10.0, long=tuple((100.0 * number, 20.0) for number in range(100)), spread=(0.1,) * 101)
"""A fifth of the time, in moments of 20 ms."""


def test_without_stalls_nothing_waits() -> None:
    found = Stalling(None, 0.0, Random(1))
    assert [found.running(5.0), found.woken(6.0), found.turn(7.0)] == [5.0, 6.0, 7.0]


def test_who_runs_in_a_moment_goes_on_at_its_end() -> None:
    found = Stalling(SEEN, 0.0, Random(1))
    waits = [found.running(at) - at for at in range(100_000)]
    waited = [ms for ms in waits if ms > 0]
    assert len(waited) / len(waits) == pytest.approx(0.2, rel=0.1)
    assert max(waited) <= 20 and sum(waited) / len(waited) == pytest.approx(10, rel=0.1)
    assert found.running(17.0) == Stalling(SEEN, 0.0, Random(1)).running(17.0)  # also if the time was passed
    assert found.running(found.running(50_000.0)) == found.running(50_000.0)


def test_what_is_short_is_drawn_for_each_wake_up_beyond_the_median() -> None:
    spread = (*[0.1] * 60, *[0.3] * 40, 8.0)
    found = Stalling(Stalls(seconds=1.0, spread=spread), 0.0, Random(1))
    waits = [found.woken(0.0) for _ in range(2000)]
    assert {round(ms, 3) for ms in waits} == {0.0, 0.2}
    assert sum(ms > 0 for ms in waits) / 2000 == pytest.approx(0.4, abs=0.05)
    assert found.running(3.0) == 3.0


def test_the_sender_waits_for_the_interpreters_lock_and_nobody_else() -> None:
    found = Stalling(None, 5.0, Random(1))
    waits = [found.turn(0.0) for _ in range(1000)]
    assert 0 <= min(waits) < 0.1 and 4.9 < max(waits) <= 5
    assert found.woken(3.0) == 3.0


def test_a_producer_on_a_machine_that_stalls() -> None:
    """Who sends records one by one waits for each stall with the chance of its length, and then for its rest."""
    load = Workload([Stream(rate=200, arrivals="regular")])
    brokers = Brokers.alike(1, rtt_ms=0.5, fixed_ms=0, per_mib_ms=0)
    calm, stalled = (
        predict(load, {"linger.ms": 0}, brokers=brokers, costs=NO_COSTS, stalls=stalls, seconds=20)
        for stalls in (None, SEEN)
    )
    assert calm.latency.longest == pytest.approx(0.5, abs=0.01)
    assert stalled.latency.p50 == pytest.approx(0.5, abs=0.01)
    assert 18 < stalled.latency.p99 < 45
    # Of records that come in a fifth of the time, and of answers that come in it.
    assert stalled.latency.mean - calm.latency.mean == pytest.approx(2.3, rel=0.25)
    assert stalled.acknowledged == stalled.sent == calm.sent - stalled.backlog
    assert (
        stalled.as_json()
        == predict(load, {"linger.ms": 0}, brokers=brokers, costs=NO_COSTS, stalls=SEEN, seconds=20).as_json()
    )


def test_a_producer_beside_a_thread_that_computes() -> None:
    """Both of a record's turns, when it is sent and when its answer comes, wait for the lock: half of 5 ms each."""
    load = Workload([Stream(rate=20, arrivals="regular")])
    brokers = Brokers.alike(1, rtt_ms=0.5, fixed_ms=0, per_mib_ms=0)
    costs = Costs(wake=0, turn=0, request=0, batch=0, record=0, switch=5.0)
    found = predict(load, {"linger.ms": 0}, brokers=brokers, costs=costs, seconds=20)
    assert found.latency.p50 == pytest.approx(5.5, abs=0.7)
    assert 9 < found.latency.longest <= 10.6
    assert "waits up to 5 ms for the interpreter's lock" in " ".join(found.assumptions)


def test_callers_that_are_held_and_those_that_think_stall_too() -> None:
    load = Workload(callers="closed", think_ms=2.0, threads=2, sizes=1000)
    found = predict(load, {"linger.ms": 0}, costs=NO_COSTS, stalls=SEEN, seconds=5)
    calm = predict(load, {"linger.ms": 0}, costs=NO_COSTS, seconds=5)
    assert found.sent < 0.9 * calm.sent
    load = Workload(rate=2000, sizes=10_000)
    memory = {"buffer.memory": 1 << 16}
    held = predict(load, memory, brokers=Brokers.alike(1, bandwidth=5_000_000), stalls=SEEN, seconds=2)
    assert held.holds > 0 and held.acknowledged + held.lost == held.sent
