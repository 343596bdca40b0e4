"""``forebay pipeline run`` on a real Spark: the counters of a job, and one line for each failure Spark finds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from forebay.pipeline import JobError, load
from forebay.spark.jobs.frames import build_frame, map_rows
from forebay.spark.jobs.runner import encoded, write
from forebay.testing import EmbeddedBroker
from tests.spark.conftest import ReadAll
from tests.support.pace import PROGRAM_S

JOB = """
[sources.rows]
format = "csv"
path = "rows.csv"
schema = "a STRING, b INT"
options = {{ header = true }}

[sql]
query = "SELECT a, b, b * 2 AS twice FROM rows"

[map]
key = "a"
value = "to_json(struct(*))"

[sink]
topic = "{topic}"

[producer]
bootstrap.servers = "{servers}"
"""


@pytest.fixture
def job_file(tmp_path: Path, topic: str, broker: EmbeddedBroker) -> Path:
    (tmp_path / "rows.csv").write_text("a,b\nx,1\ny,2\n")
    path = tmp_path / "job.toml"
    path.write_text(JOB.format(topic=topic, servers=broker.bootstrap_servers))
    return path


def run(spark: Any, path: Path, overrides: dict[str, str] | None = None) -> Any:
    job = load(path, overrides)
    return write(job, encoded(job, map_rows(job, build_frame(job, spark))))


def test_a_job_maps_and_writes(spark: Any, job_file: Path, topic: str, read_all: ReadAll) -> None:
    counters = run(spark, job_file)
    assert (counters["rows"], counters["acknowledged"]) == (2, 2)
    assert sorted((m.key(), m.value()) for m in read_all(topic)) == [
        (b"x", b'{"a":"x","b":1,"twice":2}'),
        (b"y", b'{"a":"y","b":2,"twice":4}'),
    ]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"map.key": "c"}, r"^\[map\] key: .*`c`.*cannot be resolved.*`a`"),
        ({"map.key": "a ||"}, r"^\[map\] key: .*[Ss]yntax error"),
        ({"sql.query": "SELECT * FROM nowhere"}, r"^\[sql\]: .*`nowhere` cannot be found"),
        ({"sources.rows.format": "nosuch"}, "^source 'rows': .*nosuch"),
        (
            {"sources.rows.format": "kafka"},
            "^source 'rows': to read from Kafka Spark needs a jar: .*spark.jars.packages",
        ),
        ({"sources.rows.schema": "a NOTATYPE"}, "^source 'rows', schema: "),
        ({"map.partition": "a"}, "partition attribute unsupported type string; it must be INT or BIGINT"),
        ({"map.value": "CAST(raise_error('row is bad') AS STRING)"}, "row is bad"),
    ],
)
def test_what_spark_refuses_is_one_line_with_the_place(
    spark: Any, job_file: Path, overrides: dict[str, str], message: str
) -> None:
    with pytest.raises(JobError, match=message) as caught:
        run(spark, job_file, overrides)
    assert "\n" not in str(caught.value)


FUNCTION = """
from pyspark.sql.functions import udf
from pyspark.sql.types import StringType

class Own(Exception): pass

def inner(text):
    raise Own(f"cannot take {text}")

outer = udf(lambda text: inner(text), StringType())

def in_a_task(rows):
    return rows.select(outer("a").alias("value"))

def in_spark(rows):
    return rows.selectExpr("nothing AS value")

def here(rows):
    return {}["k"]
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("in_a_task", r"^write: failing\.Own: cannot take [xy] \(failing\.py, line 8\)$"),
        ("in_spark", r"^\[transform\] failing:in_spark: AnalysisException: .*`nothing`.* \(failing\.py, line 16\)$"),
        ("here", r"^\[transform\] failing:here: KeyError: 'k' \(failing\.py, line 19\)$"),
    ],
)
def test_a_function_that_raises_says_class_message_and_line(
    spark: Any, job_file: Path, topic: str, broker: EmbeddedBroker, name: str, message: str
) -> None:
    (job_file.parent / "failing.py").write_text(FUNCTION)
    text = JOB.format(topic=topic, servers=broker.bootstrap_servers)
    head, _, rest = text.partition("[sql]")
    job_file.write_text(f'{head}[transform]\nfunction = "failing:{name}"\n[sink]{rest.partition("[sink]")[2]}')
    with pytest.raises(JobError, match=message):
        run(spark, job_file)


def test_a_row_that_a_reader_refuses_says_file_record_and_value(spark: Any, job_file: Path) -> None:
    (job_file.parent / "rows.csv").write_text("a,b\nx,1\ny,zz\n")
    words = r'^write: .*rows\.csv: Malformed records .*\[y,null\]\.?: For input string: "zz"$'
    with pytest.raises(JobError, match=words):
        run(spark, job_file, {"sources.rows.options.mode": "FAILFAST"})


def test_a_stream_job_takes_what_is_there_and_ends(
    spark: Any, job_file: Path, topic: str, read_all: ReadAll, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("a,b\nz,7\n")
    with job_file.open("a") as file:
        file.write('[stream]\ncheckpoint = "state"\n')
    assert run(spark, job_file, {"sources.rows.path": str(folder)})["rows"] == 1
    assert [m.key() for m in read_all(topic)] == [b"z"]


def test_an_aggregation_in_update_mode_writes_what_changed(
    spark: Any, job_file: Path, topic: str, read_all: ReadAll, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number, text in enumerate(("a,b\nx,1\ny,2\n", "a,b\nx,5\n")):
        (folder / f"{number}.csv").write_text(text)
        os.utime(folder / f"{number}.csv", (number, number))
    with job_file.open("a") as file:
        file.write('[stream]\ncheckpoint = "state"\noutput_mode = "update"\n')
    overrides = {
        "sources.rows.path": str(folder),
        "sources.rows.options.maxFilesPerTrigger": "1",
        "sql.query": "SELECT a, sum(b) AS total FROM rows GROUP BY a",
    }
    counters = run(spark, job_file, overrides)
    assert (counters["rows"], [one["rows"] for one in counters["history"]]) == (3, [2, 1])
    assert sorted(message.value() for message in read_all(topic)) == [
        b'{"a":"x","total":1}',
        b'{"a":"x","total":6}',
        b'{"a":"y","total":2}',
    ]


MANY_TASKS = """
from forebay.spark.jobs.session import DEFAULT_CONF
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]")
for name, value in DEFAULT_CONF.items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
frame = session.range(0, 2_000_000, 1, 20).selectExpr("CAST(id AS STRING) AS key", "repeat('x', 100) AS value")
for _ in range(8):
    frame.mapInArrow(lambda batches: batches, frame.schema).write.format("noop").mode("overwrite").save()
"""


@pytest.mark.rest("starts a JVM of its own")
def test_tasks_take_over_workers_under_the_settings_of_a_pipeline() -> None:
    """Spark 4.3.0 fails half of such jobs with ``spark.python.udf.pipelined.enabled``."""
    command = [sys.executable, "-c", MANY_TASKS]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_S, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]


@pytest.mark.rest("starts a JVM of its own")
def test_the_command_prints_counters_and_ends_with_zero(job_file: Path) -> None:
    arguments = ["pipeline", "run", str(job_file), "--json"]
    code = f"import sys; from forebay.cli.__main__ import main; sys.exit(main({arguments!r}))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PROGRAM_S, check=False)
    assert ended.returncode == 0, ended.stderr
    assert '"acknowledged": 2' in ended.stdout
