"""Three of the kills of ``make kill``, one in each micro-batch of a stream, and every row compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kill.points import Plan, Point, drawn
from tests.kill.run import Run
from tests.support.pace import TEST_S

POINTS = (Point.WORKER_END, Point.DRIVER_BETWEEN, Point.DRIVER_AFTER)


# Each kill of the driver costs the start of another one.
@pytest.mark.rest("starts a JVM of its own")
@pytest.mark.timeout(4 * TEST_S)
def test_no_row_is_lost_or_doubled(kafka: Any, tmp_path: Path) -> None:
    outcome = Run(kafka, tmp_path, "kills", dict(enumerate(POINTS)), master="local[3,4]").play()
    assert set(outcome.kills) == set(POINTS)
    assert outcome.starts == 3


def test_a_micro_batch_is_hit_once_and_where_the_plan_says(tmp_path: Path) -> None:
    plan = Plan(tmp_path)
    plan.write({0: Point.BROKER, 1: Point.LOST})
    assert not plan.strike(0, Point.LOST) and not plan.strike(2, Point.LOST)
    assert plan.strike(0, Point.BROKER)
    assert not Plan(tmp_path).strike(0, Point.BROKER)
    assert plan.hits() == [0]


def test_a_seed_draws_the_same_kills_again_and_each_kind_as_often() -> None:
    points = tuple(Point)
    first = drawn("7", 2 * len(points), points)
    assert first == drawn("7", 2 * len(points), points) != drawn("8", 2 * len(points), points)
    assert all(list(first.values()).count(point) == 2 for point in points)
