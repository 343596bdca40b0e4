"""Waits for slots and in the line, beside recursions that are played and formulas that are exact."""

from __future__ import annotations

import math
from random import Random

import pytest

from forebay._closed_forms.latency import latency
from forebay._closed_forms.queueing import (
    NONE,
    Arrivals,
    Wait,
    bunch_gap,
    handler_wait,
    line_wait,
    merging,
    slot_gap,
    slot_waits,
    upper_gamma,
)

STEPS = 60_000


def waits_of(gaps: list[float], service: float) -> list[float]:
    """Of requests in one line."""
    found, wait = [], 0.0
    for gap in gaps:
        wait = max(0.0, wait + service - gap)
        found.append(wait)
    return found


@pytest.mark.parametrize("busy", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("shape", [1, 2, 8])
def test_a_line_beside_one_that_is_played(busy: float, shape: int) -> None:
    random = Random(2)
    seen = waits_of([random.gammavariate(shape, 1 / shape) for _ in range(STEPS)], busy)
    found = line_wait(Arrivals(1.0, 1 / shape), busy, 0.0)
    assert found.chance * found.mean == pytest.approx(sum(seen) / STEPS, rel=0.3, abs=0.01)
    high = latency((wait, 1.0) for wait in seen).p99
    assert found.mean * math.log(max(1.0, found.chance / 0.01)) == pytest.approx(high, rel=0.2, abs=0.06)


def test_requests_that_linger_keeps_apart_do_not_wait() -> None:
    assert line_wait(Arrivals(6.0, 1.0, 5.0), 4.0, 0.0) == NONE
    late = line_wait(Arrivals(6.0, 1.0, 5.0), 5.5, 0.0)
    assert late.chance * late.mean == pytest.approx(0.5 * 0.5 / (2 * 0.5), rel=0.2)


def test_a_line_that_never_ends() -> None:
    assert line_wait(Arrivals(1.0, 1.0), 1.0, 0.0) == Wait(1.0, math.inf)
    assert line_wait(Arrivals(1.0, 0.0), 0.5, 0.0) == NONE
    assert line_wait(Arrivals(1.0, 1.0), 0.0, 0.0) == NONE


@pytest.mark.parametrize("in_flight", [1, 2, 5])
@pytest.mark.parametrize("turnaround", [0.5, 2.0, 6.0])
def test_gaps_of_slots_beside_ones_that_are_played(in_flight: int, turnaround: float) -> None:
    random = Random(4)
    went = [0.0] * in_flight
    for _ in range(STEPS):
        went.append(max(went[-1] + random.expovariate(1.0), went[-in_flight] + turnaround))
    gap, held = slot_gap(Arrivals(1.0, 1.0), turnaround, in_flight)
    assert gap == pytest.approx(went[-1] / STEPS, rel=0.1)
    assert 0 <= held <= 1


def test_one_slot_is_exact() -> None:
    gap, held = slot_gap(Arrivals(1.0, 1.0), 2.0, 1)
    assert gap == pytest.approx(2 + math.exp(-2))
    assert held == pytest.approx(1 - math.exp(-2))
    assert slot_gap(Arrivals(10.0, 1.0, 9.0), 5.0, 1) == (10.0, 0.0)


@pytest.mark.parametrize("in_flight", [1, 2])
def test_waits_for_slots_beside_ones_that_are_played(in_flight: int) -> None:
    random, turnaround = Random(6), 2.0
    went, held, long = [0.0] * in_flight, 0.0, 0.0
    for _ in range(STEPS):
        went.append(max(went[-1] + random.expovariate(1.0), went[-in_flight] + turnaround))
        closed = max(0.0, went[-in_flight] + turnaround - went[-1])
        held += closed
        long += max(0.0, closed - 1.0)
    arrivals = Arrivals(1.0, 1.0)
    gap, share = slot_gap(arrivals, turnaround, in_flight)
    bunch = bunch_gap(arrivals, share, turnaround, 0.01, in_flight)
    found = slot_waits(
        arrivals, gap=gap, bunch=bunch, held=share, service=0.01, turnaround=turnaround, in_flight=in_flight
    )
    assert sum(weight for _, weight in found) == pytest.approx(held / went[-1], abs=0.03)
    assert sum(weight for wait, weight in found if wait > 1) == pytest.approx(long / went[-1], abs=0.03)


def test_bunches_stay_together_where_requests_are_regular() -> None:
    arrivals = Arrivals(1.0, 0.001, 0.9)
    gap, held = slot_gap(arrivals, 15.0, 3)
    found = slot_waits(arrivals, gap=gap, bunch=1.1, held=held, service=0.1, turnaround=15.0, in_flight=3)
    assert gap == pytest.approx(5.0)
    assert held == pytest.approx(1.0)
    assert max(wait for wait, _ in found) == pytest.approx(15 - 2.2, rel=0.1)
    assert sum(weight for _, weight in found) == pytest.approx(1.0, abs=0.1)


def test_a_slot_that_is_always_free() -> None:
    arrivals = Arrivals(10.0, 1.0, 9.0)
    assert slot_waits(arrivals, gap=10, bunch=1, held=0, service=1, turnaround=2.0, in_flight=2) == []
    assert merging(arrivals, 0.0) == 0.0
    assert 0 < merging(Arrivals(1.0, 1.0), 0.5) < 0.5


@pytest.mark.parametrize("shape", [1.0, 2.0, 5.0, 7.5, 40.0])
def test_tails_of_gamma(shape: float) -> None:
    random = Random(9)
    drawn = [random.gammavariate(shape, 1.0) for _ in range(20_000)]
    for bound in (shape / 2, shape, shape * 1.5):
        share = sum(value > bound for value in drawn) / len(drawn)
        assert upper_gamma(shape, bound) == pytest.approx(share, abs=0.015)
    assert upper_gamma(shape, 0.0) == 1.0


def test_handlers() -> None:
    assert handler_wait(8, 0.0, 5.0) == NONE
    assert handler_wait(1, 0.5, 4.0).chance == pytest.approx(0.5)
    assert handler_wait(8, 0.5, 5.0).chance < 0.1
    assert handler_wait(8, 1.0, 5.0).mean == math.inf
