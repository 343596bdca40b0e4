"""A job carried out: session, sources, query, mapping, write; every failure one line that names the place.

Each step is a function of its own, so that a caller may look at the frame between them.  PySpark is imported
when a session is needed, not before: a bad job file must not cost that.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forebay.errors import KafkaError
from forebay.pipeline.job import TRIGGER_NOW, Job, JobError, Source, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULT_MASTER = "local[*]"
FIELDS = ("key", "value", "headers", "partition", "timestamp", "topic")

# Quiet by default, and rows handed over in small pieces through a local socket: Arrow batches of 64 MiB, which is
# Spark's default, leave the processor's cache on their way.  A job's own conf wins.
DEFAULT_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxBytesPerBatch": "1m",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.udf.pipelined.enabled": "true",
}

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """How a job ended."""

    exit_code: int
    """0, or 1 after a failure."""
    error: str | None = None
    """One line; None on success."""
    counters: Mapping[str, Any] = field(default_factory=dict)
    """The sink's counters (rows, acknowledged, partitions, batches ...); empty after a failure."""


def run(
    path: str | os.PathLike[str], overrides: Mapping[str, str] | None = None, *, report: Report = lambda line: None
) -> PipelineResult:
    """Runs a job file to its end; a stream with an interval as trigger runs until it is stopped.

    Args:
        overrides: as for ``forebay.pipeline.load``.
        report: gets a line at each step.
    """
    try:
        job = load(path, overrides)
        report(f"{job.name}: starting Spark on {job.master or DEFAULT_MASTER}")
        session = open_session(job)
    except (JobError, OSError) as error:
        return PipelineResult(1, str(error))
    try:
        report(f"{job.name}: reading {', '.join(source.name for source in job.sources)}")
        frame = map_rows(job, build_frame(job, session))
        report(f"{job.name}: writing to {job.topic or 'the topics the rows name'}")
        return PipelineResult(0, None, write(job, frame))
    except (JobError, KafkaError) as error:
        return PipelineResult(1, str(error))
    finally:
        session.stop()


def open_session(job: Job) -> SparkSession:
    """A session as the job asks for.

    Raises:
        JobError: PySpark or Java is not there, or the session cannot start.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        from forebay.spark import reason, register
    except ImportError as error:
        raise JobError(f"PySpark is not installed ({error.name}): pip install 'forebay[spark]'") from None
    master = job.master or os.environ.get("MASTER") or DEFAULT_MASTER
    _check_java(master)
    if master.startswith("local"):
        # Spark would take the first "python3" on the PATH, which need not be the one that has this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # Everything of a local master is on this machine: it need not listen, or look itself up, on the network.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(job.name)
    builder = builder.remote(master) if _is_remote(master) else builder.master(master)
    for key, value in (DEFAULT_CONF | dict(job.conf)).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise JobError(f"Spark cannot start on {master}: {reason(error)}") from None
    if not _is_remote(master):
        session.sparkContext.setLogLevel("OFF")  # the failures arrive as exceptions, with the reason
    register(session)
    return session


def _is_remote(master: str) -> bool:
    """A Spark Connect server: it has the JVM, and logs where it runs."""
    return master.startswith("sc://")


def _check_java(master: str) -> None:
    home = os.environ.get("JAVA_HOME")
    if _is_remote(master):
        return
    if home and not Path(home, "bin", "java").exists():
        raise JobError(f"no Java: JAVA_HOME is {home!r}, which has no bin/java. Spark needs Java 17 or later")
    if not home and shutil.which("java") is None:
        raise JobError("no Java: Spark needs Java 17 or later on the PATH, or JAVA_HOME")


def build_frame(job: Job, session: SparkSession) -> DataFrame:
    """The query's rows, or the only source's.

    Raises:
        JobError: a source or the query is refused by Spark; names the table of the job file.
    """
    frames = [_read(source, session) for source in job.sources]
    if job.query is None:
        return frames[0]
    for source, frame in zip(job.sources, frames, strict=True):
        frame.createOrReplaceTempView(source.name)
    query = job.query
    return _judged(lambda: session.sql(query), "[sql]")  # type: ignore[no-any-return]


def _read(source: Source, session: SparkSession) -> DataFrame:
    reader: Any = (session.readStream if source.stream else session.read).format(source.format)
    reader = reader.options(**source.options)
    if source.schema is not None:
        schema = source.schema
        reader = _judged(lambda: reader.schema(schema), f"source {source.name!r}, schema")
    return _judged(lambda: reader.load(source.path), f"source {source.name!r}")  # type: ignore[no-any-return]


def map_rows(job: Job, frame: DataFrame) -> DataFrame:
    """The record fields: the mapped ones, and the query's own columns of those names.

    Raises:
        JobError: an expression is refused by Spark (unknown column, syntax), or there is no value.
    """
    from pyspark.sql import functions

    columns: list[Any] = []
    for name in FIELDS:
        expression = job.mapping.get(name)
        if expression is not None:
            text = expression
            column = _judged(lambda text=text: functions.expr(text), f"[map] {name}")  # type: ignore[misc]
            # One by one: Spark names the column it does not know, not the expression it stands in.
            _judged(lambda column=column: frame.select(column), f"[map] {name}")  # type: ignore[misc]
            columns.append(column.alias(name))
        elif name in frame.columns:
            columns.append(frame[name])
    if "value" not in job.mapping and "value" not in frame.columns:
        raise JobError(f"[map] has no value, and the rows have no column of that name: {', '.join(frame.columns)}")
    return frame.select(*columns)


def write(job: Job, frame: DataFrame) -> Mapping[str, Any]:
    """Writes the mapped rows and returns the sink's counters.

    Raises:
        JobError: the sink refused the frame, or a row was not delivered; the sink's own line.
    """
    if job.stream is None:
        with tempfile.TemporaryDirectory(prefix="forebay-") as folder:
            path = job.metrics or os.path.join(folder, "counters.json")
            writer = frame.write.format("forebay").mode("append").options(**_sink_options(job, path))
            _judged(writer.save, "write")
            return _counters(path)
    path = job.metrics or f"{job.stream.checkpoint.rstrip('/')}.counters.json"
    _judged(lambda: _stream(job, frame, path), "stream")
    return _counters(path)


def _sink_options(job: Job, metrics: str) -> dict[str, str]:
    options = {f"kafka.{name}": value for name, value in job.producer.items()}
    if job.topic is not None:
        options["topic"] = job.topic
    return options | {"metrics.path": metrics}


def _stream(job: Job, frame: DataFrame, metrics: str) -> None:
    stream = job.stream
    assert stream is not None
    writer = frame.writeStream.format("forebay").options(**_sink_options(job, metrics))
    writer = writer.option("checkpointLocation", stream.checkpoint)
    if stream.name is not None:
        writer = writer.queryName(stream.name)
    if stream.trigger == TRIGGER_NOW:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=stream.trigger)
    writer.start().awaitTermination()


def _counters(path: str) -> Mapping[str, Any]:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    except FileNotFoundError:
        return {}  # a stream that found nothing to do commits nothing


def _judged(step: Callable[[], Any], where: str) -> Any:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from forebay.spark import reason

    try:
        return step()
    except (PySparkException, Py4JError) as error:
        raise JobError(f"{where}: {reason(error)}") from None
