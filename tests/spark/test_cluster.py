"""The sink on clusters of several processes, a batch write and a stream on each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from demo.check import partition_of
from forebay.admin import AdminClient
from forebay.spark.exactly_once import protocol
from forebay.testing import EmbeddedBroker
from tests.spark.clusters import connect_server, standalone, unpacked_wheel
from tests.spark.committed import assert_exactly, digest
from tests.spark.conftest import ReadAll
from tests.support.pace import HANG_S, PROGRAM_S
from tests.support.readme import ROOT
from tools.kafka import RealKafka

pytestmark = pytest.mark.rest("starts a JVM of its own")

ROWS = 20_000
LINES = 1000
PARTITIONS = 3
SMALL = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    # The driver waits for both executors: else one of them may have done all before the other is there.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{HANG_S:.0f}s",
}

Places = set[tuple[str, str]]
RunJob = Callable[[dict[str, Any]], Places]


@pytest.fixture
def run_job(broker: EmbeddedBroker, topic: str, read_all: ReadAll, tmp_path: Path) -> RunJob:
    """Runs ``tests.spark.job`` in a process of its own and compares what arrived.

    Returns (working folder, file of the package) of each Python worker that made rows.
    """

    def run(cluster: dict[str, Any]) -> Places:
        broker.create_topic(f"{topic}-stream", PARTITIONS)
        run_program({"servers": broker.bootstrap_servers, "batch": topic, **cluster}, tmp_path)
        assert sorted(int(message.value()) for message in read_all(f"{topic}-stream")) == list(range(2 * LINES))
        return places_of(read_all(topic))

    return run


def run_program(work: dict[str, Any], tmp_path: Path) -> None:
    """Runs ``tests.spark.job``; the stream has two files, each a micro-batch."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(2):
        lines = range(number * LINES, (number + 1) * LINES)
        (folder / f"{number}.txt").write_text("".join(f"{line}\n" for line in lines))
    work = {
        "conf": {},
        "rows": ROWS,
        "stream": f"{work['batch']}-stream",
        "folder": str(folder),
        "checkpoint": str(tmp_path / "state"),
        "limit_s": 2 * HANG_S,
        **work,
    }
    command = [sys.executable, "-m", "tests.spark.job", json.dumps(work)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PROGRAM_S, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def places_of(messages: list[Any]) -> Places:
    """Compares the batch write's records, and tells where they came from."""
    assert sorted(int(message.value()) for message in messages) == list(range(ROWS))
    places = set()
    for message in messages:
        assert message.key() == b"key-" + message.value()
        assert message.partition() == partition_of(message.key(), PARTITIONS)
        ((name, place),) = message.headers()
        assert name == "place"
        folder, _, file = place.decode().partition("|")
        places.add((folder, file))
    return places


def test_executors_in_processes_of_their_own(run_job: RunJob) -> None:
    places = run_job({"master": "local-cluster[2,1,1024]", "conf": SMALL})
    assert len({folder for folder, file in places}) == 2


def test_a_standalone_cluster_that_gets_the_package_as_an_archive(run_job: RunJob, tmp_path: Path) -> None:
    archive = unpacked_wheel(tmp_path)
    conf = {"spark.archives": f"{archive}#forebay-env", "spark.executorEnv.PYTHONPATH": "forebay-env"}
    with standalone(tmp_path, workers=2) as master:
        places = run_job({"master": master, "conf": SMALL | conf})
    assert {Path(folder).parents[1].name for folder, file in places} == {"worker-0", "worker-1"}
    for folder, file in places:
        assert Path(folder, file).is_relative_to(Path(folder, "forebay-env")), (folder, file)


def test_exactly_once_where_executors_come_and_go_and_workers_are_not_kept(kafka: RealKafka, tmp_path: Path) -> None:
    """The package comes as an archive; each task has a Python worker of its own, and so its transaction a name."""
    archive = unpacked_wheel(tmp_path)
    conf = {
        "spark.archives": f"{archive}#forebay-env",
        "spark.executorEnv.PYTHONPATH": "forebay-env",
        "spark.python.worker.reuse": "false",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
        **{key: value for key, value in SMALL.items() if "Registered" not in key},
    }
    for name in ("moving", "moving-stream"):
        kafka.create_topic(name, PARTITIONS)
    with standalone(tmp_path, workers=2) as master:
        work = {"master": master, "conf": conf, "exactly_once": True, "drain": True, "batch": "moving"}
        run_program({**work, "servers": kafka.bootstrap_servers}, tmp_path)
    written = ((b"key-%d" % row, digest(b"%d" % row)) for row in range(ROWS))
    assert_exactly(kafka.bootstrap_servers, "moving", Counter(written))
    lines = ((b"", digest(b"%d" % line)) for line in range(2 * LINES))
    assert_exactly(kafka.bootstrap_servers, "moving-stream", Counter(lines))
    with AdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        assert admin.list_transactions(states=["Ongoing"], prefix="moving") == []
        names = [one.transactional_id for one in admin.list_transactions(prefix="moving-")]
    workers = {name.rsplit("-", 2)[1] for name in protocol.ids_of("moving", names)}
    assert len(workers) == 4  # as many as tasks


def test_spark_connect(run_job: RunJob, tmp_path: Path) -> None:
    with connect_server(tmp_path) as remote:
        run_job({"remote": remote})
