"""The sink, with a hand that kills the process it is in, or a neighbour, where the plan says so."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from forebay.model import TransactionIdentity
from forebay.spark import ForebayDataSource, source
from forebay.spark.exactly_once.control_topic import connect
from forebay.spark.exactly_once.protocol import State
from forebay.spark.source import StreamWriter
from forebay.spark.writer import TaskId, current_task
from tests.kill.points import DRIVER, Plan, Point
from tests.support.pace import HANG_S, within

RETRY_S = within(10)
"""How long a task of a stage's older attempt waits for the next one."""


def kill_driver() -> None:
    os.killpg(int(os.environ[DRIVER]), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def wait_for(done: Callable[[], bool], limit_s: float) -> bool:
    limit = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > limit:
            return False
        time.sleep(0.05)
    return True


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class KillingDataSource(ForebayDataSource):
    """Format ``forebay_kill``."""

    @classmethod
    def name(cls) -> str:
        return "forebay_kill"

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        made = super().streamWriter(schema, overwrite)
        return KillingWriter(made.sink, made.claim)


class KillingWriter(StreamWriter):
    """A stream's writer that may kill."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        plan, task = Plan.of_environment(), current_task()
        batch = int(task.batch or -1)
        message = super().write(self._in_the_middle(plan, batch, task, iterator))
        # Not the first: another task's transaction is complete then, and stays.
        if task.partition > 0 and plan.strike(batch, Point.WORKER_END):
            os.kill(os.getpid(), signal.SIGKILL)
        return message

    def _in_the_middle(self, plan: Plan, batch: int, task: TaskId, iterator: Iterator[Any]) -> Iterator[Any]:
        for number, rows in enumerate(iterator):
            yield rows
            if number == 0:
                self._retry_the_stage(plan, batch, task)
                self._hit_a_task(plan, batch)
                self._wait_for_a_copy(plan, batch, task)

    def _retry_the_stage(self, plan: Plan, batch: int, task: TaskId) -> None:
        """Removes a shuffle's files once a micro-batch: tasks that begin later fail, and Spark starts the stage again.

        This task goes on when the next attempt of its stage writes the same partition beside it.
        """
        name = f"partition-{batch}-{task.partition}"
        again = not plan.first(name)
        if again:
            plan.first(f"{name}-again")
        files = [*plan.shuffle_files()]
        if files and plan.first(f"retried-{batch}"):
            for file in files:
                file.unlink(missing_ok=True)
            wait_for(lambda: plan.has_come(f"{name}-again"), RETRY_S)

    def _wait_for_a_copy(self, plan: Plan, batch: int, task: TaskId) -> None:
        copy = f"copy-{batch}"
        if plan.strike(batch, Point.COPY_WINS):
            wait_for(lambda: False, HANG_S)  # Spark kills this attempt when its copy is done
        elif plan.strike(batch, Point.COPY_LOSES):
            assert wait_for(lambda: plan.has_come(copy), HANG_S), "no speculative copy has started"
        elif task.attempt > 0 and plan.point(batch) is Point.COPY_LOSES and plan.first(copy):
            wait_for(lambda: False, HANG_S)

    def _hit_a_task(self, plan: Plan, batch: int) -> None:
        if plan.strike(batch, Point.TASK_RAISES):
            raise RuntimeError("raised in the middle of a task")
        if plan.strike(batch, Point.WORKER_MIDDLE):
            os.kill(os.getpid(), signal.SIGKILL)
        if plan.strike(batch, Point.DRIVER_TASKS):
            kill_driver()
        if plan.strike(batch, Point.EXECUTOR):
            # This process, its daemon, the JVM.
            os.kill(parent_of(os.getppid()), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        plan = Plan.of_environment()
        # In the process that commits, which does nothing else.
        vars(source)["connect"] = lambda producer, settings: KillingTopic(connect(producer, settings), plan, batchId)
        super().commit(messages, batchId)
        if plan.strike(batchId, Point.DRIVER_AFTER):
            kill_driver()


class KillingTopic:
    """A control topic that may kill before or after what it is asked for."""

    def __init__(self, topic: Any, plan: Plan, batch: int) -> None:
        self._topic = topic
        self._plan = plan
        self._batch = batch
        self._written = self._ended = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._topic, name)

    def write(self, driver: TransactionIdentity, state: State) -> TransactionIdentity:
        first = self._written == 0
        self._written += 1
        if first:
            self._strike_driver(Point.DRIVER_BEFORE)
            self._strike_self(Point.COMMIT_BEFORE)
        else:
            self._strike_driver(Point.DRIVER_ENDED)
        after = self._topic.write(driver, state)
        if first:
            self._strike_driver(Point.DRIVER_DECIDED)
            self._strike_broker()
        return after  # type: ignore[no-any-return]

    def end(self, identity: TransactionIdentity, commit: bool) -> bool:
        if self._ended == 1:
            self._strike_driver(Point.DRIVER_BETWEEN)
            self._strike_driver(Point.LOST)
            self._strike_self(Point.COMMIT_BETWEEN)
        self._ended += 1
        return self._topic.end(identity, commit)  # type: ignore[no-any-return]

    def _strike_driver(self, point: Point) -> None:
        if self._plan.strike(self._batch, point):
            kill_driver()

    def _strike_self(self, point: Point) -> None:
        if self._plan.strike(self._batch, point):
            os.kill(os.getpid(), signal.SIGKILL)

    def _strike_broker(self) -> None:
        if not self._plan.strike(self._batch, Point.BROKER):
            return
        # ``run`` has the broker; it removes the file when the broker is gone.
        asked = self._plan.folder / "kill-the-broker"
        asked.touch()
        wait_for(lambda: not asked.exists(), HANG_S)
