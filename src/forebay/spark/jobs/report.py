"""One page for one run: what was written, and how it went over time.  It stands alone.

A batch job has a point for each task, a stream one for each micro-batch.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from email.utils import formatdate
from typing import Any

from forebay._plots import NARROW, Series, columns, lines, page, table
from forebay.spark.jobs.job import Job, job_lines

MOST_ROWS = 50
"""Of the table of micro-batches or tasks."""

Entry = Mapping[str, Any]

FILL = (
    "Percent of batch.size, before compression.  A batch is full by the size that it is expected to have once it is "
    "compressed, so what compresses well is over 100."
)
TASK_TIME = (
    "Seconds from the first row of a task to its last acknowledgement: mostly Spark's work, no record waits so long."
)
BATCH_TIME = "Seconds of a micro-batch, as Spark and its tasks measured them."
EXPLAINED = (
    "rows/s is over all the time from the first row to the last acknowledgement, pauses of a stream included. The "
    "compression ratio is bytes sent over those before compression. The fill is of batch.size before compression, and "
    "over 100% where records compress well: a batch is full by the size that it is expected to have once compressed."
)


def render(job: Job, counters: Mapping[str, Any], batches: Sequence[Entry] = ()) -> str:
    """The page as HTML.

    Args:
        counters: what ``metrics.path`` holds; may be empty.
        batches: Spark's progress of each micro-batch; none for a batch job.
    """
    streaming = job.stream is not None
    entries = [one for one in counters.get("history" if streaming else "last_tasks", ()) if one["rows"]]
    body = [
        f"<h1>{html.escape(job.name)}</h1>",
        f'<p class="about">{html.escape(_when(counters))}</p>',
        _tiles(counters),
        _plots(_of_stream(entries, batches) if streaming else _of_tasks(entries)),
        _plots(_of_partitions(counters.get("partitions", {})), "Partitions"),
        _table(entries, streaming),
        _definitions(job),
    ]
    return page(f"{job.name}: forebay pipeline", "\n".join(filter(None, body)))


def _when(counters: Mapping[str, Any]) -> str:
    started, finished = counters.get("started_ms"), counters.get("finished_ms")
    if not started or not finished:
        return "Nothing was written."
    spent = (finished - started) / 1000
    return f"First row {formatdate(started / 1000, usegmt=True)}, last acknowledgement {spent:,.2f} s later."


def _tiles(counters: Mapping[str, Any]) -> str:
    if not counters:
        return ""
    spent = ((counters.get("finished_ms") or 0) - (counters.get("started_ms") or 0)) / 1000
    values = {
        "rows": f"{counters['rows']:,}",
        "acknowledged": f"{counters['acknowledged']:,}",
        "rows/s": f"{counters['rows'] / spent:,.0f}" if spent > 0 else "-",
        "bytes sent": _size(counters["bytes_sent"]),
        "before compression": _size(counters["bytes_raw"]),
        "compression ratio": f"{counters['compression_ratio']:.3f}",
        "batches": f"{counters['batches']:,}",
        "average fill": f"{counters['average_fill']:.0%}",
        "tasks": f"{counters['tasks']:,}",
        "commits": f"{counters['commits']:,}",
    }
    if "dead_letters" in counters:
        values["dead letters"] = f"{counters['dead_letters']:,}"
    tiles = "".join(f"<div><b>{value}</b>{html.escape(name)}</div>" for name, value in values.items())
    return f'<div class="tiles">{tiles}</div>\n<p class="about">{html.escape(EXPLAINED)}</p>'


def _of_stream(entries: Sequence[Entry], batches: Sequence[Entry]) -> Iterable[str]:
    numbered = [(_number(one, place), one) for place, one in enumerate(entries)]
    x = "micro-batch"
    yield columns(
        "Rows", x, "Rows of a micro-batch that wrote any.", [(at, one["rows"]) for at, one in numbered], width=NARROW
    )
    yield _over_time(entries, "micro-batch")
    yield _bytes(x, numbered)
    yield columns(
        "Batches",
        x,
        "Record batches of a micro-batch, of all topics.",
        [(at, one["batches"]) for at, one in numbered],
        width=NARROW,
    )
    yield columns("Fill", x, FILL, [(at, one["fill"] * 100) for at, one in numbered], width=NARROW)
    spans = [
        Series("trigger to commit (Spark)", _durations(batches, "triggerExecution")),
        Series("the batch's query and write (Spark)", _durations(batches, "addBatch")),
        Series("first row to last acknowledgement", [(at, _seconds(one)) for at, one in numbered]),
    ]
    yield lines("Time of a micro-batch", x, BATCH_TIME, spans, width=NARROW)


def _of_tasks(entries: Sequence[Entry]) -> Iterable[str]:
    numbered = [(float(one["partition"]), one) for one in entries]
    x = "Spark partition"
    yield _over_time(entries, "task")
    yield columns(
        "Rows", x, "Rows of a task of the last commit.", [(at, one["rows"]) for at, one in numbered], width=NARROW
    )
    yield columns(
        "Bytes",
        x,
        "Bytes of record batches that a task sent, compressed.",
        [(at, one["bytes_sent"]) for at, one in numbered],
        width=NARROW,
    )
    yield columns(
        "Batches",
        x,
        "Record batches of a task, of all topics.",
        [(at, one["batches"]) for at, one in numbered],
        width=NARROW,
    )
    yield columns("Fill", x, FILL, [(at, one["fill"] * 100) for at, one in numbered], width=NARROW)
    spans = [(at, _seconds(one)) for at, one in numbered]
    yield columns("Time of a task", x, TASK_TIME, spans, width=NARROW)


def _over_time(entries: Sequence[Entry], of: str) -> str:
    """Rows added up, each entry's evenly over its time: when each was acknowledged is not kept.

    The road not taken: all of them at the entry's end.  The tasks of a job end together, so that drew a cliff.
    """
    spans = [(one["started_ms"], max(one["finished_ms"], one["started_ms"] + 1), one["rows"]) for one in entries]
    if not spans:
        return ""
    start = min(began for began, _, _ in spans)
    slopes: dict[int, float] = {}
    for began, ended, rows in spans:
        slopes[began] = slopes.get(began, 0.0) + rows / (ended - began)
        slopes[ended] = slopes.get(ended, 0.0) - rows / (ended - began)
    points, total, slope, before = [], 0.0, 0.0, start
    for at in sorted(slopes):
        total += slope * (at - before)
        points.append(((at - start) / 1000, total))
        slope, before = slope + slopes[at], at
    caption = (
        f"Rows written, added up; those of a {of} are drawn evenly from its first row to its last acknowledgement."
    )
    return lines("Rows over time", "s", caption, [Series("rows", points)], width=NARROW)


def _bytes(x: str, numbered: Sequence[tuple[float, Entry]]) -> str:
    series = [
        Series("sent", [(at, one["bytes_sent"]) for at, one in numbered]),
        Series("before compression", [(at, one["bytes_raw"]) for at, one in numbered]),
    ]
    return lines("Bytes", x, "Bytes of record batches, as they were sent and before compression.", series, width=NARROW)


def _of_partitions(partitions: Mapping[str, int]) -> Iterable[str]:
    """Records by Kafka partition, a plot for each topic."""
    topics: dict[str, list[tuple[float, float]]] = {}
    for where, count in partitions.items():
        topic, _, number = where.rpartition("-")
        topics.setdefault(topic, []).append((float(number), float(count)))
    for topic, counts in sorted(topics.items()):
        yield columns(topic, "Kafka partition", "Records of each partition.", sorted(counts), width=NARROW)


def _plots(figures: Iterable[str], title: str = "") -> str:
    drawn = "\n".join(filter(None, figures))
    head = f"<h2>{html.escape(title)}</h2>\n" if title else ""
    return f'{head}<div class="plots" style="margin-top: 1.5rem">{drawn}</div>' if drawn else ""


def _table(entries: Sequence[Entry], streaming: bool) -> str:
    if not entries:
        return ""
    newest = entries[-MOST_ROWS:]
    heads = ("micro-batch" if streaming else "task", "rows", "batches", "fill", "bytes sent", "seconds")
    rows = [
        (
            f"{_number(one, place):.0f}" if streaming else f"{one['partition']}, attempt {one['attempt']}",
            f"{one['rows']:,}",
            f"{one['batches']:,}",
            f"{one['fill']:.0%}",
            f"{one['bytes_sent']:,}",
            f"{_seconds(one):.3f}",
        )
        for place, one in enumerate(newest, len(entries) - len(newest))
    ]
    title = "Micro-batches" if streaming else "Tasks"
    kept = f", the last {MOST_ROWS} of {len(entries)}" if len(entries) > MOST_ROWS else ""
    return f"<h2>{title}{kept}</h2>\n{table(heads, rows)}"


def _definitions(job: Job) -> str:
    pairs = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in job_lines(job))
    return f"<h2>The job</h2>\n<dl>{pairs}</dl>"


def _durations(batches: Sequence[Entry], name: str) -> list[tuple[float, float]]:
    return [
        (float(one["batch_id"]), one["duration_ms"][name] / 1000)
        for one in batches
        if one["rows"] and name in one["duration_ms"]
    ]


def _number(entry: Entry, place: int) -> float:
    batch: int | None = entry.get("batch_id")
    return float(place if batch is None else batch)


def _seconds(entry: Entry) -> float:
    return float(entry["finished_ms"] - entry["started_ms"]) / 1000


def _size(count: int) -> str:
    for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} B"
