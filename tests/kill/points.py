"""Where a micro-batch is hit, and the plan that says which one is hit where; each is hit once.

The plan is a folder, because the processes that look at it share nothing else: ``plan.json`` by the micro-batch's
number, and a file ``hit-<number>`` that the first process makes which comes to the place.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

FOLDER = "FOREBAY_KILL_FOLDER"
DRIVER = "FOREBAY_KILL_DRIVER"
"""The process group of the driver: its Python and its JVM."""

LOCAL_DIR = "local"
"""Spark's folder for shuffle files, in the plan's folder."""


class Point(Enum):
    """What is killed, and when."""

    TASK_RAISES = "a task raises in the middle of its rows"
    WORKER_MIDDLE = "a Python worker is killed in the middle of its rows"
    WORKER_END = "a Python worker is killed when its transaction is complete, before it reports"
    EXECUTOR = "an executor's JVM is killed in the middle of a task's rows"
    COMMIT_BEFORE = "the commit process is killed before the decision"
    COMMIT_BETWEEN = "the commit process is killed between the ends of two transactions"
    DRIVER_TASKS = "the driver is killed in the middle of a task's rows"
    DRIVER_BEFORE = "the driver is killed before the decision"
    DRIVER_DECIDED = "the driver is killed behind the decision, before the first end"
    DRIVER_BETWEEN = "the driver is killed between the ends of two transactions"
    DRIVER_ENDED = "the driver is killed behind the last end, before the control topic says so"
    DRIVER_AFTER = "the driver is killed after the commit, before Spark notes it"
    LOST = "the driver is killed between two ends and comes back when the transactions have timed out"
    BROKER = "the broker is killed before the first end, and starts again"
    COPY_WINS = "a task is slow, and its speculative copy ends first"
    COPY_LOSES = "a task is slow, and it ends before its speculative copy"


IN_TASKS = frozenset((Point.TASK_RAISES, Point.WORKER_MIDDLE, Point.WORKER_END, Point.EXECUTOR, Point.DRIVER_TASKS))
CLUSTER = (Point.EXECUTOR, Point.COPY_WINS, Point.COPY_LOSES)
"""Those that need executors of their own: Spark starts no speculative copy on the host of the first attempt."""
LOCAL = tuple(point for point in Point if point not in CLUSTER)


class Plan:
    """The plan in a folder; see the module."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_environment(cls) -> Plan:
        """The one that the driver was started with."""
        return cls(Path(os.environ[FOLDER]))

    def write(self, points: Mapping[int, Point]) -> None:
        """Makes the plan; keys are numbers of micro-batches."""
        (self.folder / "plan.json").write_text(json.dumps({str(batch): point.name for batch, point in points.items()}))

    def point(self, batch: int) -> Point | None:
        """Where the micro-batch is to be hit, also if it has been."""
        name = json.loads((self.folder / "plan.json").read_text()).get(str(batch))
        return None if name is None else Point[name]

    def strike(self, batch: int, point: Point) -> bool:
        """Whether this process is the one that hits the micro-batch, here and now."""
        return self.point(batch) is point and self.first(f"hit-{batch}")

    def first(self, name: str) -> bool:
        """Whether this is the first process that comes to what the name stands for."""
        try:
            os.close(os.open(self.folder / name, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def has_come(self, name: str) -> bool:
        """Whether a process has come to what the name stands for."""
        return (self.folder / name).exists()

    def shuffle_files(self) -> list[Path]:
        """What Spark has written between two stages, in its own folder."""
        return sorted((self.folder / LOCAL_DIR).rglob("shuffle_*"))

    def retries(self) -> int:
        """The micro-batches of which a stage lost its shuffle files, and some partition was written again."""
        lost = [path.name.removeprefix("retried-") for path in self.folder.glob("retried-*")]
        return sum(any(self.folder.glob(f"partition-{batch}-*-again")) for batch in lost)

    def hits(self) -> list[int]:
        """The micro-batches that were hit."""
        return sorted(int(path.name.removeprefix("hit-")) for path in self.folder.glob("hit-*"))


def drawn(seed: str, count: int, points: tuple[Point, ...]) -> dict[int, Point]:
    """``count`` micro-batches from 0 on, each point about as often as any other, in an order of the seed."""
    chosen = [points[number % len(points)] for number in range(count)]
    random.Random(seed).shuffle(chosen)
    return dict(enumerate(chosen))
