"""``df.writeStream.format("forebay")``: at least once, from a checkpoint, whatever happens to the driver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from forebay.testing import EmbeddedBroker
from tests.spark.conftest import ReadAll
from tests.support.pace import HANG_S, PROGRAM_S, until

ROWS = 100_000
FILES = 10

DRIVER = textwrap.dedent(
    """
    import os, sys
    from pyspark.sql import SparkSession
    folder, checkpoint, servers, topic = sys.argv[1:]
    spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
             .config("spark.driver.memory", "768m").getOrCreate())
    rows = spark.readStream.schema("value STRING").option("maxFilesPerTrigger", 1).text(folder)
    query = (rows.writeStream.format("forebay").option("kafka.bootstrap.servers", servers).option("topic", topic)
             .option("checkpointLocation", checkpoint).trigger(availableNow=True).start())
    query.awaitTermination()
    """
)


def stream(spark: Any, folder: Path, options: dict[str, str], **trigger: Any) -> None:
    rows = spark.readStream.schema("value STRING").text(str(folder))
    rows.writeStream.format("forebay").options(**options).trigger(**trigger).start().awaitTermination(HANG_S)


def test_a_stream_goes_on_from_its_checkpoint_and_adds_to_its_counters(
    spark: Any, sink: dict[str, str], topic: str, read_all: ReadAll, tmp_path: Path, metrics: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    options = sink | {"checkpointLocation": str(tmp_path / "state"), "metrics.path": str(metrics), "queryName": "q"}
    (folder / "1.txt").write_text("".join(f"{i}\n" for i in range(1000)))
    stream(spark, folder, options, availableNow=True)
    (folder / "2.txt").write_text("".join(f"{i}\n" for i in range(1000, 1500)))
    stream(spark, folder, options, availableNow=True)
    assert sorted(int(m.value()) for m in read_all(topic)) == list(range(1500))
    counters = json.loads(metrics.read_text())
    assert (counters["rows"], counters["commits"]) == (1500, 2)


def test_the_continuous_trigger_commits_nothing_instead_of_losing_rows(
    spark: Any, sink: dict[str, str], tmp_path: Path
) -> None:
    """Spark drops the rows and only logs what a commit raises: what counts is that no epoch passes for written."""
    state = tmp_path / "state"
    rows = (
        spark.readStream.format("rate").option("numPartitions", 1).load().selectExpr("CAST(value AS STRING) AS value")
    )
    query = (
        rows.writeStream.format("forebay")
        .options(**sink, checkpointLocation=str(state))
        .trigger(continuous="200 milliseconds")
        .start()
    )
    try:
        until((state / "offsets" / "5").exists, "epochs that came to an end")
        assert committed(state) == 0
    finally:
        query.stop()


def start_driver(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    # A session of its own: killing its group takes the JVM and the workers along, as the loss of a host would.
    with log.open("wb") as output:
        return subprocess.Popen([sys.executable, "-c", DRIVER, *arguments], start_new_session=True, stderr=output)


def committed(checkpoint: Path) -> int:
    return len([entry for entry in (checkpoint / "commits").glob("*") if entry.name.isdigit()])


def wait_for(condition: Any, driver: subprocess.Popen[bytes], log: Path) -> None:
    def reached() -> bool:
        if condition():
            return True
        assert driver.poll() is None, f"the driver ended by itself: {log.read_text()[-2000:]}"
        return False

    until(reached, "the stream gets so far")


@pytest.mark.rest("starts a JVM of its own")
def test_a_driver_that_is_killed_in_the_middle_loses_nothing(
    broker: EmbeddedBroker, topic: str, read_all: ReadAll, tmp_path: Path
) -> None:
    folder, checkpoint = tmp_path / "in", tmp_path / "state"
    folder.mkdir()
    each = ROWS // FILES
    for number in range(FILES):
        rows = range(number * each, (number + 1) * each)
        (folder / f"{number:02}.txt").write_text("".join(f"{row}\n" for row in rows))
    arguments = [str(folder), str(checkpoint), broker.bootstrap_servers, topic]
    log = tmp_path / "driver.log"
    first = start_driver(arguments, log)
    try:
        wait_for(lambda: committed(checkpoint) >= 2, first, log)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    done = committed(checkpoint)
    assert 2 <= done < FILES
    second = start_driver(arguments, log)
    try:
        assert second.wait(PROGRAM_S) == 0, log.read_text()[-2000:]
    finally:
        if second.poll() is None:
            os.killpg(second.pid, signal.SIGKILL)
            second.wait()
    assert committed(checkpoint) == FILES
    read = [int(message.value()) for message in read_all(topic)]
    assert set(read) == set(range(ROWS))
