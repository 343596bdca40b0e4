"""Starts the driver again until its stream is done, with one kill in each micro-batch, and judges what is readable."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import forebay
from tests.kill.points import FOLDER, Plan, Point
from tests.spark.committed import assert_exactly, digest
from tests.support.pace import PROGRAM_S, within, within_ms
from tools.kafka import RealKafka

ROOT = Path(__file__).parents[2]
TASKS = 3
SHUFFLED = 5
"""Tasks behind a shuffle: more than there are slots, so that some begin when its files are gone."""
ROWS = 250
"""Of a task; some are more, so that files differ in size."""
TIMEOUT_MS = within_ms(15_000)
"""``transaction.timeout.ms`` of a run in which transactions are left to time out."""
LONG_TIMEOUT_MS = 300_000

Say = Callable[[str], None]


class RunOutcome(NamedTuple):
    """How a run ended."""

    kills: Counter[Point]
    starts: int
    rows: int
    retries: int
    """Stages that lost the files that they read."""


class Run:
    """One topic, one checkpoint, one plan.

    Args:
        kafka: with ``transaction.abort.timed.out.transaction.cleanup.interval.ms`` of a second.
        folder: of its own.
        points: by the number of the micro-batch; there are as many micro-batches, and one more.
        retries: each micro-batch has a shuffle, whose files are deleted while the sink's stage runs.
    """

    def __init__(
        self,
        kafka: RealKafka,
        folder: Path,
        name: str,
        points: Mapping[int, Point],
        *,
        master: str,
        retries: bool = False,
    ) -> None:
        self._kafka = kafka
        self._name = name
        self._points = dict(points)
        self._retries = retries
        self._folder = folder
        self._plan = Plan(folder)
        self._plan.write(points)
        self._expected = self._make_files(random.Random(name))
        timeout = TIMEOUT_MS if Point.LOST in self._points.values() else LONG_TIMEOUT_MS
        self._work = {
            "master": master,
            "tasks": TASKS,
            "shuffle": SHUFFLED if retries else 0,
            "folder": str(folder / "in"),
            "options": {
                "kafka.bootstrap.servers": kafka.bootstrap_servers,
                "kafka.transaction.timeout.ms": str(timeout),
                "topic": name,
                "deliveryGuarantee": "exactly-once",
                "transactionalIdPrefix": name,
                "checkpointLocation": str(folder / "state"),
            },
        }
        kafka.create_topic(name, 4)

    def _make_files(self, chance: random.Random) -> Counter[tuple[bytes, str]]:
        (self._folder / "in").mkdir()
        expected: Counter[tuple[bytes, str]] = Counter()
        for number in range((len(self._points) + 1) * TASKS):
            rows = []
            for row in range(ROWS + number % TASKS * 20):
                key, value = f"{number}-{row}", f"{chance.getrandbits(160):x}"
                rows.append(f"{key},{value}\n")
                expected[key.encode(), digest(value.encode())] += 1
            path = self._folder / "in" / f"{number:04}.csv"
            path.write_text("".join(rows))
            # Spark takes the oldest first.
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        return expected

    def play(self, say: Say = lambda text: None) -> RunOutcome:
        """Runs to the end.

        Raises:
            AssertionError: a row is missing or too many, or the stream did not come to its end.
        """
        starts = 0
        most = 2 * len(self._points) + 3
        while True:
            starts += 1
            assert starts <= most, f"not done after {most} starts: {self._log()[-3000:]}"
            status = self._live()
            hits = self._plan.hits()
            say(f"{self._name}: start {starts} ended with {status}; {len(hits)} of {len(self._points)} kills")
            if status == 0:
                break
            if hits and self._points[hits[-1]] is Point.LOST:
                time.sleep(TIMEOUT_MS / 1000 + within(3))
        assert hits == sorted(self._points), f"not hit: {sorted(set(self._points) - set(hits))}"
        assert_exactly(self._kafka.bootstrap_servers, self._name, self._expected)
        if self._retries:
            assert self._plan.retries() == len(self._points) + 1, "a stage was not attempted again"
        kills = Counter(self._points[hit] for hit in hits)
        return RunOutcome(kills, starts, sum(self._expected.values()), self._plan.retries())

    def _live(self) -> int:
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": f"{Path(forebay.__file__).parents[1]}{os.pathsep}{ROOT}",
            "SPARK_LOCAL_IP": "127.0.0.1",
            FOLDER: str(self._folder),
        }
        with open(self._folder / "driver.log", "ab") as log:
            driver = subprocess.Popen(
                [sys.executable, "-m", "tests.kill.stream", json.dumps(self._work)],
                env=environment,
                cwd=self._folder,
                start_new_session=True,
                stdout=log,
                stderr=log,
            )
            try:
                return self._watch(driver)
            finally:
                if driver.poll() is None:
                    os.killpg(driver.pid, signal.SIGKILL)
                    driver.wait()

    def _watch(self, driver: subprocess.Popen[bytes]) -> int:
        asked = self._folder / "kill-the-broker"
        limit = time.monotonic() + PROGRAM_S + within(30) * len(self._points)
        while driver.poll() is None:
            assert time.monotonic() < limit, f"the driver does not end: {self._log()[-3000:]}"
            if asked.exists():
                self._kafka.kill_node(0)
                asked.unlink()
                self._kafka.start_node(0)
            time.sleep(0.05)
        return driver.returncode

    def _log(self) -> str:
        return (self._folder / "driver.log").read_text(errors="replace")
