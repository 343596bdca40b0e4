"""Where Spark does not find the format by itself: other threads, and a Python that nobody chose."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import forebay.spark
from forebay.testing import EmbeddedBroker
from tests.spark.conftest import ReadAll
from tests.support.pace import HANG_S

NOT_FOUND = "Failed to find the data source: forebay"


def write(frame: Any, options: dict[str, str]) -> str:
    """How the write ends."""
    try:
        frame.write.format("forebay").mode("append").options(**options).save()
    except Exception as error:  # noqa: BLE001 - Py4J's or Spark's
        return forebay.spark.reason(error)
    return "written"


def test_threads_of_a_pool_write_once_each_is_registered(
    spark: Any, sink: dict[str, str], topic: str, read_all: ReadAll
) -> None:
    frame = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(forebay.spark.doctor, spark).result()
        assert [each.what for each in found.findings if not each.ok] == ["thread"], str(found)
        assert NOT_FOUND in pool.submit(write, frame, sink).result()
    with ThreadPoolExecutor(2, initializer=forebay.spark.register, initargs=(spark,)) as pool:
        assert list(pool.map(lambda _: write(frame, sink), range(4))) == ["written"] * 4
        found = pool.submit(forebay.spark.doctor, spark, sink).result()
    assert found.ok, str(found)
    assert [each.what for each in found.findings] == ["driver", "planner", "thread", "executor", "brokers", "topic"]
    assert len(read_all(topic)) == 40


def test_a_stream_from_another_thread(spark: Any, sink: dict[str, str], read_all: ReadAll, tmp_path: Path) -> None:
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "1.txt").write_text("a\nb\n")

    def run() -> None:
        forebay.spark.register(spark)
        lines = spark.readStream.schema("value STRING").text(str(tmp_path / "lines"))
        query = (
            lines.writeStream.format("forebay")
            .options(**sink, checkpointLocation=str(tmp_path / "state"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(HANG_S)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result()
    assert sorted(message.value() for message in read_all(sink["topic"])) == [b"a", b"b"]


def test_what_is_not_reached_and_what_is_not_there(spark: Any, broker: EmbeddedBroker) -> None:
    away = forebay.spark.doctor(spark, {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.max.block.ms": "2000"})
    assert [(each.what, each.ok) for each in away.findings][-1] == ("brokers", False)
    assert "127.0.0.1:1" in away.findings[-1].found


PROGRAM = """
import sys
from pyspark.sql import SparkSession
import forebay.spark
from tests.spark.test_doctor import write

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
frame = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
sink = {"kafka.bootstrap.servers": sys.argv[1], "topic": sys.argv[2]}
print("found", [each.what for each in forebay.spark.doctor(spark).findings if not each.ok])
print("without", write(frame, sink))
forebay.spark.register(spark)
print("with", write(frame, sink))
print("after", [each.what for each in forebay.spark.doctor(spark).findings if not each.ok])
spark.stop()
"""


@pytest.mark.rest("starts a JVM of its own")
def test_an_environment_that_is_not_activated(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    """Spark plans with the ``python3`` of PATH, which has no package."""
    empty = tmp_path / "bin"
    empty.mkdir()
    base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    (empty / "python3").symlink_to(base)
    hidden = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["PATH"] = os.pathsep.join([str(empty), *os.defpath.split(os.pathsep), environment["PATH"]])
    root = Path(__file__).parents[2]
    program = f"import sys; sys.path[:0] = [{str(root)!r}, {str(root / 'src')!r}]\n{PROGRAM}"
    command = [sys.executable, "-c", program, broker.bootstrap_servers, topic]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S, cwd=tmp_path)
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "planner" in said["found"] and NOT_FOUND in said["without"]
    assert (said["with"], said["after"]) == ("written", "[]")
