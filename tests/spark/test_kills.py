"""Some of the kills of ``make kill``, one in each micro-batch of a stream, and every row compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kill.points import Plan, Point, drawn
from tests.kill.run import Run
from tests.spark.clusters import standalone
from tests.support.pace import TEST_S

POINTS = (Point.WORKER_END, Point.DRIVER_BETWEEN, Point.DRIVER_AFTER)


# Each kill of the driver costs the start of another one.
@pytest.mark.rest("starts a JVM of its own")
@pytest.mark.timeout(4 * TEST_S)
def test_no_row_is_lost_or_doubled(kafka: Any, tmp_path: Path) -> None:
    outcome = Run(kafka, tmp_path, "kills", dict(enumerate(POINTS)), master="local[3,4]").play()
    assert set(outcome.kills) == set(POINTS)
    assert outcome.starts == 3


@pytest.mark.rest("starts a JVM of its own")
@pytest.mark.timeout(4 * TEST_S)
def test_a_stage_is_attempted_again_beside_tasks_of_its_first_attempt(kafka: Any, tmp_path: Path) -> None:
    points = {0: Point.TASK_RAISES, 1: Point.DRIVER_DECIDED}
    outcome = Run(kafka, tmp_path, "stages", points, master="local[3,4]", retries=True).play()
    assert outcome.retries == 3  # of the micro-batch behind the two as well


@pytest.mark.rest("starts a JVM of its own")
@pytest.mark.timeout(4 * TEST_S)
def test_a_task_and_its_speculative_copy_write_the_same_rows(kafka: Any, tmp_path: Path) -> None:
    points = {0: Point.COPY_LOSES, 1: Point.COPY_WINS}
    with standalone(tmp_path, 2, 2) as master:
        outcome = Run(kafka, tmp_path, "copies", points, master=master).play()
    assert outcome.starts == 1 and set(outcome.kills) == set(points.values())


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
