"""Values of a DataFrame's write: the table and its tasks, and what is to be said of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forebay.spark import sizes
from forebay.tune._checks import TuneError, number, whole
from forebay.tune._json import json_of
from forebay.tune.files import checked_settings
from forebay.tune.reasons import Reason
from forebay.tune.workload import Compression, Stream

MIB = 1 << 20
ARROW_ROWS = 10_000
"""Spark's default of ``spark.sql.execution.arrow.maxRecordsPerBatch``."""
ARROW_BYTES = 64 * MIB
"""Spark's default of ``spark.sql.execution.arrow.maxBytesPerBatch``."""
READ_BYTES = 200e6
"""Bytes a second that a task hands over at most, where no rate is given: a guess."""
READ_ROWS = 500_000.0
"""And rows a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTable:
    """A table, and how Spark writes it.

    Raises:
        ConfigError: a value that cannot be.
    """

    rows: int
    row_bytes: int
    """Of key and value together."""
    tasks: int
    """That run at the same time."""
    splits: int | None = None
    """Tasks in all; None: as many as run at the same time."""
    executors: int = 1
    partitions: int = 12
    """Of the topic."""
    keyed: bool = False
    """Each row has a key or a partition, so that it may not go to any one."""
    grouped: bool = False
    """``forebay.spark.repartition`` has put the rows of a partition into one task."""
    rate: float | None = None
    """Rows a second that a task hands over at most; None: a guess by their size."""
    arrow_bytes: int = ARROW_BYTES
    """``spark.sql.execution.arrow.maxBytesPerBatch``."""
    compression: Compression | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the producer, without ``kafka.`` before them."""

    def __post_init__(self) -> None:
        for name, most in (("rows", 10**12), ("row_bytes", 1 << 30), ("tasks", 100_000), ("executors", 100_000)):
            whole(name, getattr(self, name), 1, most)
        whole("partitions", self.partitions, 1, 100_000)
        whole("arrow_bytes", self.arrow_bytes, 1)
        object.__setattr__(self, "options", checked_settings(self.options))
        if self.splits is not None:
            whole("splits", self.splits, 1, 10_000_000)
        if self.rate is not None:
            number("rate", self.rate, 0, 1e9, above=True)
        if self.grouped and not self.keyed:
            raise TuneError("rows without keys are in no partition yet, so they cannot be put into tasks by it")

    @property
    def in_all(self) -> int:
        """Tasks."""
        return self.tasks if self.splits is None else self.splits

    @property
    def rows_a_task(self) -> int:
        """The most that one has."""
        return -(-self.rows // self.in_all)

    @property
    def arrow_rows(self) -> int:
        """Rows of an Arrow batch that Spark hands over at once; those of a task are taken to be of the same size."""
        most = max(1, min(ARROW_ROWS, self.arrow_bytes // self.row_bytes))
        return -(-self.rows_a_task // -(-self.rows_a_task // most))

    @property
    def rows_s(self) -> float:
        """Rows a second that a task hands over at most."""
        return min(READ_ROWS, READ_BYTES / self.row_bytes) if self.rate is None else self.rate

    def settings(self) -> dict[str, Any]:
        """The producer's, as the sink completes them."""
        return checked_settings(sizes.configured(self.options, sizes.size_for(self.partitions)))

    def stream(self) -> Stream:
        """What a task sends."""
        shares = [float(at % self.tasks == 0 or not self.grouped) for at in range(self.partitions)]
        return Stream(
            sizes=self.row_bytes,  # type: ignore[arg-type]  # as it may be given
            partitions=tuple(shares) if self.keyed else (),
            callers="closed",
            think_ms=1000 * self.arrow_rows / self.rows_s,
            batch_rows=self.arrow_rows,
        )


@dataclass(frozen=True, slots=True)
class WriteFigures:
    """What a write of the table is, with so many tasks.

    tasks: at the same time; splits: in all.
    seconds: of the whole write, without Spark's own start and commit.
    requests, batches: in all.
    requests_s: to each node, of all tasks together; busy: the share of its handlers' time.
    others_p99_ms: of another producer of these brokers, from due to acknowledged, while the table is written.
    failed: rows of a task that were not acknowledged.
    """

    tasks: int
    splits: int
    seconds: float
    requests: int
    batches: int
    bytes_a_request: float
    rows_a_batch: float
    fill: float
    requests_s: tuple[float, ...]
    busy: tuple[float, ...]
    others_p50_ms: float
    others_p99_ms: float
    failed: int

    @property
    def busiest(self) -> int:
        """The number of the node whose handlers have the most to do."""
        return self.busy.index(max(self.busy)) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkWrite:
    """What is to be said of a table's write.

    present: as it is described.
    fewer: with as many tasks as keep the brokers under the busy share, each with more rows; None: it is kept as it is.
    grouped: with the rows of a partition in one task; None without keys, or if they are there already.
    before_ms: p50 and p99 of another producer when no table is written.
    memory: bytes that the producers of an executor take at most, outside of the JVM.
    """

    version: int
    seed: int
    table: SparkTable
    settings: Mapping[str, Any]
    busy_limit: float
    trigger_s: float | None
    before_ms: tuple[float, float]
    present: WriteFigures
    fewer: WriteFigures | None
    grouped: WriteFigures | None
    memory: int
    reasons: tuple[Reason, ...]
    assumptions: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether every row comes through, and a trigger's time is enough."""
        return not self.present.failed and (self.trigger_s is None or self.present.seconds <= self.trigger_s)

    def as_json(self) -> str:
        """All of it; the same question with the same seed gives the same text."""
        return json_of(dataclasses.asdict(self))
