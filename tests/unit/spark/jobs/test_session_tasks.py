"""How far Spark is: tasks of the stages that run now, told until the work ends."""

from __future__ import annotations

from threading import Event
from typing import Any, NamedTuple

from forebay.spark.jobs.session import tasks_of, watched
from tests.support.pace import HANG_S


class Info(NamedTuple):
    numTasks: int
    numCompletedTasks: int


class Tracker:
    def __init__(self, stages: dict[int, Info | None]) -> None:
        self.stages = stages

    def getActiveStageIds(self) -> list[int]:
        return list(self.stages)

    def getStageInfo(self, stage: int) -> Info | None:
        return self.stages[stage]


class Session:
    """A session whose context has a tracker; one of Connect has no context."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker

    @property
    def sparkContext(self) -> Any:
        return self

    def statusTracker(self) -> Tracker:
        return self.tracker


ConnectSession = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})


def test_tasks_of_all_running_stages_are_added_up() -> None:
    assert tasks_of(Tracker({1: Info(4, 1), 2: Info(6, 2), 3: None})) == (3, 10)


def test_progress_is_told_while_the_body_runs() -> None:
    told: list[tuple[str, int, int | None]] = []
    heard = Event()

    def show(text: str, done: int, total: int | None) -> None:
        told.append((text, done, total))
        heard.set()

    with watched(Session(Tracker({1: Info(4, 1)})), show):
        assert heard.wait(HANG_S)
    count = len(told)
    assert told[0] == ("tasks", 1, 4) and len(told) == count


def test_a_connect_session_is_not_watched() -> None:
    ran = []
    with watched(ConnectSession(), lambda *values: None):
        ran.append(1)
    assert ran == [1]
