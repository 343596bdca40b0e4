"""What one session carries: twenty streams at once, and hundreds of micro-batches without growing."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from forebay.testing import EmbeddedBroker
from tests.spark.conftest import ReadAll
from tests.support.pace import HANG_S, until

pytestmark = pytest.mark.rest("takes minutes")

STREAMS = 20
LINES = 50
LOOKS = 20
ENDED = (FileNotFoundError, ProcessLookupError, KeyError)
"""What a look at a process in /proc raises that has ended: a file that is gone, or no memory in its status."""
WARM, LAST = 100, 500
"""Micro-batches: after the first of these the processes are looked at, and hundreds later once more.

A thousand would show nothing that these do not, and take a busy machine a quarter of an hour.
"""


def test_twenty_streams_of_one_session_write_each_its_rows(
    spark: Any, sink: dict[str, str], topic: str, broker: EmbeddedBroker, read_all: ReadAll, tmp_path: Path
) -> None:
    queries = []
    for number in range(STREAMS):
        folder = tmp_path / f"in-{number}"
        folder.mkdir()
        for file in range(2):
            (folder / f"{file}.txt").write_text("".join(f"{number} {file} {line}\n" for line in range(LINES)))
        broker.create_topic(f"{topic}-{number}", 2)
        rows = spark.readStream.schema("value STRING").option("maxFilesPerTrigger", 1).text(str(folder))
        options = sink | {"topic": f"{topic}-{number}", "checkpointLocation": str(tmp_path / f"state-{number}")}
        queries.append(rows.writeStream.format("forebay").options(**options).trigger(availableNow=True).start())
    for number, query in enumerate(queries):
        assert query.awaitTermination(HANG_S), query.status
        wanted = sorted(f"{number} {file} {line}" for file in range(2) for line in range(LINES))
        assert sorted(message.value().decode() for message in read_all(f"{topic}-{number}")) == wanted


class Held(NamedTuple):
    """What the Python processes of a driver hold together: this one, Spark's planner, commit process and workers."""

    processes: int
    threads: int
    descriptors: int
    kib: int


def held() -> Held:
    """The least of several looks: a process that has just been replaced is there twice for a moment."""
    return Held(*map(min, zip(*(look() for _ in range(LOOKS)), strict=True)))


def look() -> Held:
    """What is there at this moment. What has ended holds nothing, though it may still stand in /proc."""
    found = [each for pid in _python_below(os.getpid()) if (each := _of(pid)) is not None]
    return Held(len(found), *(sum(each[place] for each in found) for place in range(3)))


def _python_below(top: int) -> Iterator[int]:
    yield top
    for child in _children(top):
        yield from (pid for pid in _python_below(child) if _is_python(pid))


def _children(of: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(*ENDED):
        for task in Path(f"/proc/{of}/task").iterdir():
            with contextlib.suppress(*ENDED):
                found += map(int, (task / "children").read_text().split())
    return found


def _is_python(pid: int) -> bool:
    with contextlib.suppress(*ENDED):
        return "python" in os.readlink(f"/proc/{pid}/exe")
    return False


def _of(pid: int) -> tuple[int, int, int] | None:
    with contextlib.suppress(*ENDED):
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return int(status["Threads"]), len(os.listdir(f"/proc/{pid}/fd")), int(status["VmRSS"].split()[0])
    return None


@pytest.mark.skipif(sys.platform != "linux", reason="the processes are looked at in /proc")
def test_what_has_ended_is_passed_over() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # it stays in /proc, without a program
    try:
        assert ended.pid in _children(os.getpid())
        assert not _is_python(ended.pid)
        assert look().processes >= 1
    finally:
        ended.wait()
    assert _of(ended.pid) is None
    assert not _is_python(ended.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="the processes are looked at in /proc")
def test_hundreds_of_micro_batches_leave_nothing_behind(spark: Any, sink: dict[str, str], tmp_path: Path) -> None:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
    options = sink | {"checkpointLocation": str(tmp_path / "state")}
    writer = rows.selectExpr("CAST(value AS STRING) AS value").coalesce(1).writeStream.format("forebay")
    query = writer.options(**options).start()

    def reached(number: int) -> bool:
        assert query.isActive, query.exception()
        return bool(query.lastProgress and query.lastProgress["batchId"] >= number)

    try:
        until(lambda: reached(WARM), "the stream is warm", 10 * HANG_S)
        before = held()
        until(lambda: reached(LAST), "hundreds of micro-batches more", 40 * HANG_S)
        after = held()
    finally:
        query.stop()
    assert after.processes <= before.processes
    assert after.threads <= before.threads + 2, (before, after)
    assert after.descriptors <= before.descriptors + 4, (before, after)
    # Less than 20 KiB for a micro-batch: what is kept of each would be seen, the allocator's own ups and downs are not.
    assert after.kib - before.kib <= (LAST - WARM) * 20, (before, after)
