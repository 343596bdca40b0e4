"""The rate of a load over time."""

from __future__ import annotations

import pytest

from forebay.tune import steps
from forebay.tune.workload import Burst, Stream, Workload

STEPS = Stream(rate=((0, 500), (60, 8000)))
LOAD = Workload([STEPS, Stream(rate=100, burst=Burst(on_ms=1, off_ms=3))])


def test_the_rate_of_a_time() -> None:
    assert (steps.changes(LOAD), steps.rate_at(LOAD, 59), steps.rate_at(LOAD, 60)) == ((0.0, 60.0), 525, 8025)
    assert steps.rate_over(LOAD, 30) == 525
    assert steps.rate_over(LOAD, 120) == pytest.approx((525 + 8025) / 2)
    assert steps.changes(Workload(rate=5)) == (0.0,)


def test_the_shortest_time_in_which_it_stays() -> None:
    assert (steps.shortest(LOAD, 75), steps.shortest(LOAD, 600)) == (15, 60)
    assert steps.changes(LOAD.sooner(60)) == (0.0, 1.0)


def test_calls_are_of_records_or_of_tables() -> None:
    closed = Stream(rate=1, callers="closed", think_ms=10)
    assert steps.calls(Workload([Stream(rate=1000, batch_rows=500), closed])) == 102
