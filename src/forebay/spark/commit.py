"""What a task reports to the driver, and the counters the driver keeps of it.

A report is a commit message: it is pickled by a worker and read in another process, so it holds plain values.
Counters go to the file of the option ``metrics.path``, replaced as a whole so that a reader never sees half of
one.  A batch write replaces the file; each micro-batch of a stream adds to it, a repeated one too, because its
rows were written again.  The newest commits, and the tasks of the last one, are kept apart: a reader of the file draws
them over time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from logging import INFO, WARNING
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import WriterCommitMessage

from forebay.errors import IllegalStateError
from forebay.spark.exactly_once.protocol import MOST_APPS, NO_VERSION, TaskOutcome

FORMAT = 1
MOST_REMEMBERED = 500
"""Commits, and tasks of the last commit, that the file has one by one; the totals have all of them."""


@dataclass
class TaskReport(WriterCommitMessage):
    """One finished ``write()``: every row of it is acknowledged, else there would be no report."""

    partition_id: int
    attempt: int
    rows: int
    acknowledged: int
    batches: int
    bytes_sent: int
    """Bytes of the record batches as the broker got them, headers of batches included."""
    bytes_raw: int
    """The same before compression."""
    fill: float
    """How full the batches were on average, as a share of batch.size before compression; may pass 1."""
    started_ms: int
    """Unix time of the first row's arrival, the task's start if there was none."""
    finished_ms: int
    """Unix time at which the last acknowledgement had arrived."""
    partitions: dict[str, int] = field(default_factory=dict)
    """Records by ``topic-partition``."""
    producer: dict[str, float] = field(default_factory=dict)
    """What the producer counted during this task, by Kafka's metric names."""
    outcome: TaskOutcome | None = None
    """Of an exactly-once write: the transaction that is left open."""


SUMS = (
    "commits",
    "tasks",
    "transactions",
    "skipped_tasks",
    "rows",
    "acknowledged",
    "batches",
    "bytes_sent",
    "bytes_raw",
)


class Counters:
    """Reports of one or more writes, added up."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        old = dict(values or {})
        self.rows: int = int(old.get("rows", 0))
        self.acknowledged: int = int(old.get("acknowledged", 0))
        self.batches: int = int(old.get("batches", 0))
        self.bytes_sent: int = int(old.get("bytes_sent", 0))
        self.bytes_raw: int = int(old.get("bytes_raw", 0))
        self.filled: float = float(old.get("average_fill", 0.0)) * self.batches
        self.started_ms: int | None = old.get("started_ms")
        self.finished_ms: int | None = old.get("finished_ms")
        self.tasks: int = int(old.get("tasks", 0))
        self.commits: int = int(old.get("commits", 0))
        self.transactions: int = int(old.get("transactions", 0))
        self.skipped_tasks: int = int(old.get("skipped_tasks", 0))
        self.partitions: dict[str, int] = dict(old.get("partitions", {}))
        self.producer: dict[str, float] = dict(old.get("producer", {}))
        self.history: list[dict[str, Any]] = list(old.get("history", ()))
        self.last_tasks: list[dict[str, Any]] = list(old.get("last_tasks", ()))

    def add(self, reports: Sequence[TaskReport], batch_id: int | None = None) -> None:
        """Adds one commit's reports; ``batch_id`` is the micro-batch's number, None for a batch write."""
        self.commits += 1
        for report in reports:
            self._add_one(report)
        self.history = [*self.history, _of_commit(reports, batch_id)][-MOST_REMEMBERED:]
        self.last_tasks = [_of_task(report) for report in reports[:MOST_REMEMBERED]]

    def merge(self, other: Counters, batch_id: int) -> None:
        """Adds another write's counters; ``batch_id`` is the micro-batch's number, which that write did not know."""
        for name in (*SUMS, "filled"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, pick in (("started_ms", min), ("finished_ms", max)):
            known = [one for one in (getattr(self, name), getattr(other, name)) if one is not None]
            setattr(self, name, pick(known, default=None))
        _sum_into(self.partitions, other.partitions)
        _sum_into(self.producer, other.producer)
        newest = [{**entry, "batch_id": batch_id} for entry in other.history]
        self.history = [*self.history, *newest][-MOST_REMEMBERED:]
        self.last_tasks = other.last_tasks

    def _add_one(self, report: TaskReport) -> None:
        self.tasks += 1
        if report.outcome is not None:
            self.transactions += report.outcome.task is not None
            self.skipped_tasks += report.outcome.skipped
        self.rows += report.rows
        self.acknowledged += report.acknowledged
        self.batches += report.batches
        self.bytes_sent += report.bytes_sent
        self.bytes_raw += report.bytes_raw
        self.filled += report.fill * report.batches
        if report.rows:
            self.started_ms = min(report.started_ms, self.started_ms or report.started_ms)
            self.finished_ms = max(report.finished_ms, self.finished_ms or report.finished_ms)
        _sum_into(self.partitions, report.partitions)
        _sum_into(self.producer, report.producer)

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON; ``average_fill`` and ``compression_ratio`` are 0 while nothing was written."""
        return {
            "format": FORMAT,
            "commits": self.commits,
            "tasks": self.tasks,
            "transactions": self.transactions,
            "skipped_tasks": self.skipped_tasks,
            "rows": self.rows,
            "acknowledged": self.acknowledged,
            "batches": self.batches,
            "bytes_sent": self.bytes_sent,
            "bytes_raw": self.bytes_raw,
            "compression_ratio": round(self.bytes_sent / self.bytes_raw, 4) if self.bytes_raw else 0.0,
            "average_fill": round(self.filled / self.batches, 4) if self.batches else 0.0,
            "started_ms": self.started_ms,
            "finished_ms": self.finished_ms,
            "partitions": dict(sorted(self.partitions.items())),
            "producer": dict(sorted(self.producer.items())),
            "history": self.history,
            "last_tasks": self.last_tasks,
        }


def _of_commit(reports: Sequence[TaskReport], batch_id: int | None) -> dict[str, Any]:
    """One entry of ``history``; ``fill`` is the average over the batches."""
    wrote = [report for report in reports if report.rows]
    batches = sum(report.batches for report in wrote)
    return {
        "batch_id": batch_id,
        "tasks": len(reports),
        "rows": sum(report.rows for report in wrote),
        "batches": batches,
        "bytes_sent": sum(report.bytes_sent for report in wrote),
        "bytes_raw": sum(report.bytes_raw for report in wrote),
        "fill": round(sum(report.fill * report.batches for report in wrote) / batches, 4) if batches else 0.0,
        "started_ms": min((report.started_ms for report in wrote), default=None),
        "finished_ms": max((report.finished_ms for report in wrote), default=None),
    }


def _of_task(report: TaskReport) -> dict[str, Any]:
    """One entry of ``last_tasks``."""
    return {
        "partition": report.partition_id,
        "attempt": report.attempt,
        "rows": report.rows,
        "batches": report.batches,
        "bytes_sent": report.bytes_sent,
        "fill": round(report.fill, 4),
        "started_ms": report.started_ms,
        "finished_ms": report.finished_ms,
    }


def _sum_into(totals: dict[Any, Any], more: Mapping[Any, Any]) -> None:
    for key, value in more.items():
        totals[key] = totals.get(key, 0) + value


def complete(messages: Sequence[WriterCommitMessage | None]) -> list[TaskReport]:
    """The reports of a commit.

    Raises:
        IllegalStateError: a task has none.  Spark's continuous trigger commits without ever having called
            ``write()``: every row would be lost and the query would go on.
    """
    reports = [message for message in messages if isinstance(message, TaskReport)]
    missing = len(messages) - len(reports)
    if missing:
        raise IllegalStateError(
            f"{missing} of {len(messages)} tasks wrote nothing that could be committed. "
            "trigger(continuous=...) is not supported by Python data sources, use trigger(processingTime=...)"
        )
    return reports


def outcomes(messages: Sequence[WriterCommitMessage | None]) -> list[TaskOutcome]:
    """What the tasks of an exactly-once write left for the driver."""
    reports = [message for message in messages if isinstance(message, TaskReport)]
    return [report.outcome for report in reports if report.outcome is not None]


def notice(found: Sequence[TaskOutcome], *, streaming: bool) -> tuple[int, str] | None:
    """What to log of an exactly-once write that is a repetition, or that may not be what its user thinks it is.

    Returns:
        The level of ``logging`` and the sentence; None for an ordinary write.
    """
    claim, write = found[0].claim, found[0].write
    newest = dict(claim.versions).get(write.app)
    if claim.unfinished is not None or write.version == NO_VERSION:
        return None
    if newest is None:
        # Once so many are known, the others are forgotten.
        if not streaming or write.version == 0 or len(claim.versions) >= MOST_APPS:
            return None
        return WARNING, (
            f"Micro-batch {write} is the first of its query under this transactionalIdPrefix, and its checkpoint has "
            "earlier ones. If the prefix or the control topic was changed, the last micro-batch of before may be there "
            "twice: keep both as long as the checkpoint"
        )
    if write.version > newest:
        return None
    if write.version == newest:
        return INFO if streaming else WARNING, f"Write {write} was committed before: it is skipped, nothing is added"
    what = "Was its checkpoint rolled back?" if streaming else "A txnVersion has to grow from write to write."
    return WARNING, f"Write {write} is skipped, because write {write.app}/{newest} was committed before. {what}"


def describe_abort(messages: Sequence[WriterCommitMessage | None]) -> str:
    """One line for the log: what an aborted write left in Kafka."""
    reports = [message for message in messages if isinstance(message, TaskReport)]
    written = sum(report.acknowledged for report in reports)
    return (
        f"write aborted: {len(reports)} of {len(messages)} tasks had finished, their {written} records stay in Kafka "
        "(at least once: a repeated write doubles them)"
    )


def save(path: str, reports: Sequence[TaskReport], *, add: bool, batch_id: int | None = None) -> None:
    """Writes the counters to ``path``; with ``add`` on top of what is there.

    Args:
        batch_id: the micro-batch's number in Spark; None for a batch write.

    Raises:
        OSError: the file cannot be written.
        IllegalStateError: ``add``, and the file is no counters of ours.
    """
    counters = Counters(_load(path) if add else None)
    counters.add(reports, batch_id)
    # Beside the file, since a rename does not cross file systems; by process, since two jobs may share the path.
    temporary = Path(f"{path}.{os.getpid()}.new")
    try:
        temporary.write_text(json.dumps(counters.as_dict(), indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _load(path: str) -> Mapping[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise IllegalStateError(f"metrics.path {path!r} holds no counters of this sink: {error}") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise IllegalStateError(f"metrics.path {path!r} holds no counters of this sink (format {FORMAT})")
    return values
