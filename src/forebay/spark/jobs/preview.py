"""``--dry-run``: what a job would do, and five records as they would be sent.  Nothing is written or registered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from forebay.spark.jobs.frames import build_frame, map_rows
from forebay.spark.jobs.job import FIELDS, Job, job_lines
from forebay.spark.jobs.runner import check_sink, encoded
from forebay.spark.jobs.session import close_session, judged, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES = 5
MOST_SHOWN = 600
"""Characters of a key, value or header that are shown."""
UNBOUNDED = ("rate", "socket", "rate-micro-batch")
"""Sources that are streams alone, so that there is nothing to look at before they run."""


def preview(job: Job, session: SparkSession | None = None, *, report: Callable[[str], None] = lambda line: None) -> str:
    """The plan of a job and a sample of its records, as text.

    Args:
        session: as for ``forebay.spark.jobs.run``.
        report: gets a line at each step.

    Raises:
        JobError: what a run would be refused for.
    """
    check_sink(job)
    opened = None
    try:
        if session is None:
            report(f"{job.name}: starting Spark")
            opened = session = open_session(job)
        notes: list[str] = []
        unbounded = [source for source in job.sources if source.stream and source.format in UNBOUNDED]
        mapped = map_rows(job, build_frame(job, session, streaming=bool(unbounded)))
        frame = encoded(job, mapped, writes=False, note=notes.append)
        lines = [*_table(job), "", "columns", *(f"  {one.name}: {one.dataType.simpleString()}" for one in frame.schema)]
        lines += ["", "notes", *(f"  {note}" for note in notes)] if notes else []
        lines += ["", "plan of Spark", *_plan(frame)]
        if unbounded:
            lines += ["", f"no sample: source {unbounded[0].name!r} has no rows before the stream runs"]
        else:
            report(f"{job.name}: taking {SAMPLES} rows")
            # Limited before the rows are encoded: Spark would stop a worker in the middle of a batch otherwise.
            sample = encoded(job, mapped.limit(SAMPLES), writes=False)
            lines += _records(job, judged(sample.collect, "sample"))
        return "\n".join(lines)
    finally:
        if opened is not None:
            close_session(opened)


def _table(job: Job) -> Iterator[str]:
    yield f"job {job.name}"
    for name, value in job_lines(job):
        yield f"  {name:<28} {value}"


def _plan(frame: Any) -> list[str]:
    from contextlib import redirect_stdout
    from io import StringIO

    out = StringIO()
    with redirect_stdout(out):
        judged(lambda: frame.explain(), "plan")
    return [f"  {line}" for line in out.getvalue().splitlines() if line.strip() and not line.startswith("== ")]


def _records(job: Job, rows: Sequence[Any]) -> Iterator[str]:
    if not rows:
        yield ""
        yield "no sample: there are no rows"
    for number, row in enumerate(rows, 1):
        yield ""
        yield f"record {number}"
        values = row.asDict()
        values.setdefault("topic", job.sink.topic)
        if job.sink.topic is not None and values["topic"] != job.sink.dead_letters:
            values["topic"] = job.sink.topic
        for name in ("topic", *(field for field in FIELDS if field != "topic")):
            if name == "headers":
                yield from _headers(values.get(name))
            elif values.get(name) is not None:
                yield f"  {name:<12} {shown(values[name])}"
            elif name in ("key", "value"):
                yield f"  {name:<12} null"


def _headers(given: Any) -> Iterator[str]:
    pairs = given.items() if isinstance(given, dict) else [(one["key"], one["value"]) for one in given or ()]
    for name, value in pairs:
        yield f"  {'header':<12} {name}: {shown(value)}"


def shown(value: Any) -> str:
    """A value as people read it: text as it is, other bytes in hexadecimal."""
    if value is None:
        return "null"
    if isinstance(value, (bytes, bytearray)):
        try:
            text = bytes(value).decode()
        except UnicodeDecodeError:
            text = ""
        if not text.isprintable() or (value and not text):
            text = f"{bytes(value).hex(' ')} ({len(value)} bytes)"
            return text if len(text) <= MOST_SHOWN else f"{bytes(value[:64]).hex(' ')} ... ({len(value)} bytes)"
        value = text
    text = str(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}... ({len(text)} characters)"
