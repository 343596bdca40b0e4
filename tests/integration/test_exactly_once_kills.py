"""Processes of an exactly-once write killed (SIGKILL) on a real Kafka, without Spark: workers and drivers.

One prefix, one write after the other, each hit once and started again until it is done.  Spark's own processes are
killed by ``make kill``.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from forebay.producer import KafkaProducer
from forebay.spark.exactly_once import driver
from forebay.spark.exactly_once.control_topic import open_topic
from forebay.spark.exactly_once.protocol import Claim, TaskOutcome, Write
from forebay.spark.exactly_once.task import TaskTransaction
from forebay.spark.options import SinkOptions, parse
from forebay.spark.writer import TaskId, write
from tests.integration.test_exactly_once_steps import STEPS, CrashingTopic
from tests.spark.committed import assert_exactly, digest
from tests.support.fixtures import TopicFactory
from tools.kafka import RealKafka

pytestmark = pytest.mark.rest("as test_exactly_once_steps.py, by processes that are killed")

TASKS = 3
ROWS = 40
DRIVER_POINTS = [f"driver {step}" for step in range(STEPS)]
POINTS = [
    "worker in the middle",
    "worker at its end",
    *DRIVER_POINTS,
    "driver in the decision",
    "driver after the commit",
]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[], Any]) -> Any:
    """What ``work`` returns in a process of its own; None if that was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            gc.freeze()  # to end a client of librdkafka's here would wait for threads that only the parent has
            os.close(reading)
            with os.fdopen(writing, "wb") as to:
                to.write(pickle.dumps(work()))
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as source:
        said = source.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert status == 0 and said
    return pickle.loads(said)


class KillingTopic(CrashingTopic):
    """Kills its process before a step."""

    def step(self, name: str) -> None:
        if next(self._seen) == self._crash_at:
            die()
        self.steps.append(name)


class Job:
    """Writes of one prefix; version after version."""

    def __init__(self, servers: str, topic: str) -> None:
        self.topic = topic
        given = {"kafka.bootstrap.servers": servers, "topic": topic, "deliveryGuarantee": "exactly-once"}
        self.options: SinkOptions = parse({**given, "transactionalIdPrefix": topic})

    def rows(self, version: int, partition: int) -> list[tuple[str, str]]:
        return [(f"{version}-{partition}-{row}", f"value {version * partition + row}") for row in range(ROWS)]

    def life(self, version: int, point: str | None) -> bool:
        """One life of a driver."""
        settings = self.options.exactly_once
        assert settings is not None
        step = int(point.split()[1]) if point in DRIVER_POINTS else None
        topic = KillingTopic(open_topic(dict(self.options.producer), settings), step)
        claim = driver.begin(topic, settings.prefix)
        outcomes = []
        for partition in range(TASKS):
            topic.step("task")
            outcomes.append(self.task(claim, version, partition, point if partition == 1 else None))
        if point == "driver in the decision":
            KafkaProducer.commit_transaction = lambda *_: die()  # type: ignore[method-assign]
        driver.commit(topic, settings.prefix, outcomes, time.time() * 1000)
        if point == "driver after the commit":
            die()
        return True

    def task(self, claim: Claim, version: int, partition: int, point: str | None) -> TaskOutcome:
        """A worker's; another attempt when it was killed."""
        attempt = 0
        while True:
            hit = point if attempt == 0 else None
            outcome = in_child(partial(self.attempt, claim, version, partition, attempt, hit))
            if outcome is not None:
                return outcome  # type: ignore[no-any-return]
            attempt += 1
            assert attempt < 3

    def attempt(self, claim: Claim, version: int, partition: int, attempt: int, point: str | None) -> TaskOutcome:
        transaction = TaskTransaction(claim, Write("job", version), self.topic, partition)
        batches = self.batches(version, partition, point)
        report = write(batches, self.options, task=TaskId(partition, attempt), transaction=transaction)
        if point == "worker at its end":
            die()
        assert report.outcome is not None
        return report.outcome

    def batches(self, version: int, partition: int, point: str | None) -> Iterator[pa.RecordBatch]:
        rows = self.rows(version, partition)
        for begin in range(0, ROWS, ROWS // 2):
            keys, values = zip(*rows[begin : begin + ROWS // 2], strict=True)
            yield pa.RecordBatch.from_pydict({"key": list(keys), "value": list(values)})
            if point == "worker in the middle":
                # What was appended is on its way or in the log.
                time.sleep(0.05)
                die()

    def expected(self, versions: int) -> Counter[tuple[bytes, str]]:
        rows = [
            row for version in range(versions) for partition in range(TASKS) for row in self.rows(version, partition)
        ]
        return Counter((key.encode(), digest(value.encode())) for key, value in rows)


def kill_everywhere(job: Job, points: list[str]) -> int:
    """Each point hits a write of its own; how many processes were killed."""
    kills = 0
    for version, point in enumerate(points):
        done = in_child(partial(job.life, version, point))
        assert (done is None) == point.startswith("driver")
        kills += 1
        if done is None:
            assert in_child(partial(job.life, version, None))
        # As after a crash before Spark noted the write.
        assert in_child(partial(job.life, version, None))
    return kills


# All of POINTS take minutes: ``tests/integration/test_exactly_once_steps.py`` has a crash before each step.
TRIED = [
    "worker in the middle",
    "worker at its end",
    "driver 7",
    "driver in the decision",
    "driver 9",
    "driver after the commit",
]
"""Step 7 is the decision, step 9 the second end."""


def test_processes_that_are_killed_cost_no_row_and_double_none(kafka: RealKafka, topic: TopicFactory) -> None:
    job = Job(kafka.bootstrap_servers, topic(kafka, 3))
    assert set(TRIED) <= set(POINTS)
    assert kill_everywhere(job, TRIED) == len(TRIED)
    assert_exactly(kafka.bootstrap_servers, job.topic, job.expected(len(TRIED)))
