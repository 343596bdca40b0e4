"""What is to be least, and limits: what breaks one, and what that costs."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest

from forebay.errors import IllegalArgumentError
from forebay.tune.figures import (
    BARELY,
    BROKEN,
    MOST_EXCESS,
    PENALTY,
    WITH_ROOM,
    Figures,
    Objective,
    Variation,
    mean_of,
    spread_of,
)

RUN = Figures(p50=5, p99=20, requests=100, memory=1000, bytes=5000, cpu=3, lost=0, hold=0)


@pytest.mark.parametrize(
    ("least", "value"), [("requests", 100), ("latency", 20), ("memory", 1000), ("cpu", 3), ("bytes", 5000)]
)
def test_what_is_least(least: str, value: float) -> None:
    objective = Objective(least)
    assert objective.value(RUN) == value
    assert objective.loss(RUN, 2 * value) == 0.5


def test_limits_that_are_broken_come_worst_first() -> None:
    objective = Objective(p50_ms=4, p99_ms=10, memory=2000, lost=0, hold_ms=0)
    broken = objective.broken(RUN)
    assert [(each.limit, each.value, each.excess) for each in broken] == [("p99_ms", 20, 1), ("p50_ms", 5, 0.25)]
    assert objective.loss(RUN, 100) == pytest.approx(1 + PENALTY * 1.25)
    assert objective.excess(RUN) == 1.25
    assert objective.loss(RUN, 100, slack=0.25) == pytest.approx(1 + PENALTY * 0.75)


def test_limits_are_kept_with_room_or_barely_or_not_at_all() -> None:
    objective = Objective(p99_ms=25, memory=1000)
    found = [objective.kept(Figures(5, p99, 100, memory=1000)) for p99 in (20, 20.1, 25, 25.1)]
    assert found == [WITH_ROOM, BARELY, BARELY, BROKEN]


def test_limits_that_are_waived_do_not_count() -> None:
    objective = Objective(p99_ms=10, lost=0)
    assert objective.broken(RUN, ["p99_ms"]) == ()
    (broken,) = objective.broken(Figures(5, 2000, 100, lost=7), ["p99_ms"])
    assert (broken.limit, broken.value, broken.excess) == ("lost", 7, 7)


def test_what_never_ends_is_as_bad_as_can_be() -> None:
    (broken,) = Objective(p99_ms=10).broken(Figures(5, math.inf, 100))
    assert broken.excess == MOST_EXCESS


def test_means_and_worst() -> None:
    other = Figures(p50=7, p99=30, requests=50, memory=3000, lost=2, hold=9)
    mean = mean_of([RUN, other])
    assert (mean.p50, mean.p99, mean.requests) == (6, 25, 75)
    assert (mean.memory, mean.lost, mean.hold) == (3000, 2, 9)


def test_names_of_variations() -> None:
    names = [Variation(), Variation(rate=1.3), Variation(outage=1), Variation(slow_node=0)]
    assert [each.name for each in names] == [
        "the load as it is",
        "a rate +30 %",
        "outage 2",
        "broker 1 twice as slow",
    ]


def test_what_is_no_objective_is_refused() -> None:
    with pytest.raises(IllegalArgumentError, match="least must be one of requests, latency"):
        Objective("speed")
    with pytest.raises(IllegalArgumentError, match="p99_ms must be a number of at least 0, got nan"):
        Objective(p99_ms=math.nan)


def test_the_spread_of_runs_has_every_figure() -> None:
    found = spread_of([RUN, replace(RUN, p99=30, requests=90)])
    assert found["p99"] == (20, 30) and found["requests"] == (90, 100) and found["p50"] == (5, 5)
    assert set(found) == {each.name for each in fields(Figures)}
