"""A job carried out: session, sources, transform, mapping, encoding, write; every failure is one line with its place.

Each step is a function of its own, so that a caller may look at the frame between them.  PySpark is imported
when a session is needed, not before: a bad job file must not cost that.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forebay.errors import KafkaError
from forebay.spark.jobs import report as pages
from forebay.spark.jobs.frames import build_frame, map_rows
from forebay.spark.jobs.job import Job
from forebay.spark.jobs.loading import load
from forebay.spark.jobs.session import Show, close_session, is_connect, judged, master_of, open_session, watched
from forebay.spark.jobs.streaming import Interrupted, StreamRun, read_counters, run_stream
from forebay.spark.jobs.table import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from forebay.spark.jobs.encoding.plan import Planner

Report = Callable[[str], None]

OK, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130


def _nothing(*values: Any) -> None:
    """Shows nothing."""


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """How a job ended."""

    exit_code: int
    """0; 1 after a failure; 2 if the job file is wrong; 130 or 143 if Ctrl-C or SIGTERM ended it."""
    error: str | None = None
    """One line; None on success."""
    counters: Mapping[str, Any] = field(default_factory=dict)
    """The sink's counters (rows, acknowledged, partitions, batches ...); empty after a failure."""


def run(
    job: Job | str | os.PathLike[str],
    session: SparkSession | None = None,
    *,
    overrides: Mapping[str, str] | None = None,
    report: Report = _nothing,
    show: Show = _nothing,
) -> PipelineResult:
    """Runs a job to its end; a stream with an interval as trigger runs until it is stopped.

    Args:
        job: a job file, or what ``forebay.spark.jobs.load`` made of it.
        session: where it runs; it stays open.  None opens one as the job says, and stops it at the end.
        overrides: as for ``forebay.spark.jobs.load``.
        report: gets a line at each step.
        show: gets (what is done, how much, of how much) some times a second.
    """
    try:
        job = job if isinstance(job, Job) else load(job, overrides)
        check_sink(job)
    except JobError as error:
        return PipelineResult(WRONG, str(error))
    opened = None
    try:
        if session is None:
            report(f"{job.name}: starting Spark on {master_of(job)}")
            opened = session = open_session(job)
        return _run(job, session, report, show)
    except Interrupted as error:
        return PipelineResult(error.exit_code, f"stopped by {error}", error.counters)
    except (JobError, KafkaError, OSError) as error:
        return PipelineResult(FAILED, str(error))
    except KeyboardInterrupt:
        return PipelineResult(INTERRUPTED, "interrupted")
    finally:
        if opened is not None:
            close_session(opened)


def _run(job: Job, session: SparkSession, report: Report, show: Show) -> PipelineResult:
    report(f"{job.name}: reading {', '.join(source.name for source in job.sources)}")
    frame = encoded(job, map_rows(job, build_frame(job, session)), note=report)
    report(f"{job.name}: writing to {job.sink.topic or 'the topics the rows name'}")
    counters = write(job, frame, show)
    if job.sink.report is not None:
        report(f"{job.name}: report in {job.sink.report}")
    return PipelineResult(OK, None, counters)


def encoded(job: Job, frame: DataFrame, *, writes: bool = True, note: Report = _nothing) -> DataFrame:
    """The mapped rows as they go to the sink: bytes where the job has a format, grouped by partition if it says so.

    Args:
        writes: False asks no broker, and registers no schema.

    Raises:
        JobError: a format does not fit, or a schema cannot be registered.
    """
    frame = _planner(job, writes, note).apply(frame)
    if job.sink.repartition and writes:
        if job.stream is not None:
            raise JobError("[sink] repartition is for batch jobs: a stream has its partitions from its source")
        from forebay.spark import repartition

        frame = repartition(frame, _sink_options(job))
    return frame


def _planner(job: Job, writes: bool, note: Report) -> Planner:
    from forebay.spark.jobs.encoding.plan import Planner
    from forebay.spark.jobs.encoding.registry import SchemaRegistry

    registry = None if job.registry is None else SchemaRegistry(job.registry)
    return Planner(job, registry, writes=writes, note=note)


def write(job: Job, frame: DataFrame, show: Show = _nothing) -> Mapping[str, Any]:
    """Writes the rows and returns the sink's counters; ``dead_letters`` is among them if the job has a topic for these.

    Raises:
        JobError: the sink refused the frame, or a row was not delivered; the sink's own line.
        Interrupted: a signal stopped the stream.
    """
    if job.stream is None:
        with tempfile.TemporaryDirectory(prefix="forebay-") as folder:
            path = job.sink.metrics or os.path.join(folder, "counters.json")
            writer = frame.write.format("forebay").mode("append").options(**_written_with(job, frame, path))
            with watched(frame.sparkSession, show):
                judged(writer.save, "write")
            return _told(job, _counters(job, path), [])
    done = StreamRun()
    with stream_counters(job.sink.metrics, job.stream.checkpoint) as path:
        try:
            run_stream(job.stream, frame, _written_with(job, frame, path), show, done)
        finally:
            # A stream that failed after hours has a report too.
            counters = _told(job, _counters(job, path), done.batches)
    if done.signal is not None:
        raise Interrupted(done.signal, counters)
    return counters


@contextmanager
def stream_counters(metrics: str | None, checkpoint: str) -> Iterator[str]:
    """The file of a stream's counters: as the job says, else beside the checkpoint, so that a restart adds to it.

    A checkpoint elsewhere has no place for it.  Then the counters are those of one run, in a file that is removed.
    """
    if metrics is not None:
        yield metrics
    elif "://" in checkpoint:
        with tempfile.TemporaryDirectory(prefix="forebay-") as folder:
            yield os.path.join(folder, "counters.json")
    else:
        place = Path(f"{checkpoint.rstrip('/')}.counters.json")
        place.parent.mkdir(parents=True, exist_ok=True)  # Spark makes this folder too, but later
        yield str(place)


def _told(job: Job, counters: Mapping[str, Any], batches: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    if job.sink.report is not None:
        Path(job.sink.report).write_text(pages.render(job, counters, batches), encoding="utf-8")
    return counters


def check_sink(job: Job) -> None:
    """Lets the sink check its options, before Spark starts.

    Raises:
        JobError: names the option.
    """
    try:
        from forebay.spark import write_batches
        from forebay.spark.options import parse
    except ImportError:
        return  # open_session says what to install
    options = _sink_options(job)
    try:
        if job.stream is not None and job.stream.output_mode == "update":
            write_batches(options)
        else:
            parse(options, streaming=job.stream is not None)
    except KafkaError as error:
        text = str(error)
        for key in job.sink.options:  # the sink knows them without capitals, the file as its author wrote them
            text = text.replace(f"'{key.lower()}'", f"'{key}'")
        raise JobError(f"{job.path}: [sink.options] {text}") from None


def _sink_options(job: Job) -> dict[str, str]:
    options = dict(job.sink.options) | {f"kafka.{name}": value for name, value in job.producer.items()}
    return options if job.sink.topic is None else options | {"topic": job.sink.topic}


def _written_with(job: Job, frame: DataFrame, metrics: str) -> dict[str, str]:
    options = _sink_options(job)
    # The file is written where the driver is: on a Connect server, unless the job says where there.
    if not is_connect(frame.sparkSession) or job.sink.metrics is not None:
        options["metrics.path"] = metrics
    if job.sink.dead_letters is not None:
        options.pop("topic", None)  # each row has its topic in a column
    return options


def _counters(job: Job, path: str) -> Mapping[str, Any]:
    counters = read_counters(path)
    if job.sink.dead_letters is not None:
        partitions = counters.get("partitions", {})
        counters["dead_letters"] = sum(
            count for where, count in partitions.items() if where.rpartition("-")[0] == job.sink.dead_letters
        )
    return counters
