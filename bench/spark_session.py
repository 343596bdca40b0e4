"""One Spark session that writes the same rows in several ways, in turn: the child of ``bench.spark``.

It runs in an environment that has the PySpark to be measured.  Rows come from Parquet, because making them would cost
more than any sink.  A run's CPU time is that of this process and all below it: JVM, planners and workers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

KEY = "concat('key-', lpad(id, 8, '0')) AS key"
VALUES = {
    "100 B": "substr(repeat(sha2(CAST(id AS STRING), 512), 8), 1, 100) AS value",
    "1,000 B": "substr(repeat(sha2(CAST(id AS STRING), 512), 8), 1, 1000) AS value",
    "JSON": """to_json(named_struct('id', id, 'user', concat('user-', pmod(hash(id), 50000)), 'event',
        element_at(array('view', 'click', 'order', 'search'), CAST(pmod(hash(id, 1), 4) + 1 AS INT)), 'price',
        pmod(hash(id, 2), 100000) / 100, 'session', sha2(CAST(id DIV 20 AS STRING), 224), 'url', concat('/shop/',
        element_at(array('shoes', 'books', 'garden', 'toys'), CAST(pmod(hash(id, 3), 4) + 1 AS INT)), '/item/',
        pmod(hash(id, 4), 9000)), 'time', CAST(timestamp_seconds(1767225600 + id) AS STRING))) AS value""",
}
FILES = 20
"""Names of the one Parquet file with a case's rows: so much less has to be made and kept."""
TICKS = os.sysconf("SC_CLK_TCK")


class Bare(DataSource):
    """Takes Arrow batches from Spark and counts their rows: what the hand-over costs without any sink."""

    @classmethod
    def name(cls) -> str:
        return "bare"

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return BareWriter()

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:
        return BareStreamWriter()


class BareWriter(DataSourceArrowWriter):
    """Of ``Bare``."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        rows = 0
        for batch in iterator:
            rows += batch.num_rows
        return WriterCommitMessage()


class BareStreamWriter(DataSourceStreamArrowWriter):
    """Of ``Bare``."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return BareWriter.write(self, iterator)  # type: ignore[arg-type]


def tree_cpu_s() -> float:
    """CPU seconds of this process and those below it, ended ones included where their parent waited for them."""
    parents: dict[int, int] = {}
    spent: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            fields = Path("/proc", entry, "stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry)] = int(fields[1])
        spent[int(entry)] = sum(int(field) for field in fields[11:15])
    total = 0
    for pid, ticks in spent.items():
        at = pid
        while at not in (0, os.getpid()):
            at = parents.get(at, 0)
        total += ticks if at else 0
    return total / TICKS


def rows_of(session: SparkSession, value: str, rows: int, folder: Path) -> DataFrame:
    """The rows of one kind of value, from files that are made where they are missing."""
    place = folder / f"{value.replace(' ', '').replace(',', '')}-{rows}"
    if not place.exists():
        made = folder / "made"
        each = session.range(0, rows // FILES, 1, 1).selectExpr(KEY, VALUES[value])
        each.write.mode("overwrite").option("compression", "none").parquet(str(made))
        source = next(made.glob("*.parquet"))
        place.mkdir()
        for number in range(FILES):
            os.link(source, place / f"{number}.parquet")
    return session.read.parquet(str(place))


def write(frame: DataFrame, sink: str, options: Mapping[str, str]) -> None:
    """Writes all rows by one of the sinks; ``grouped`` is this package's behind its ``repartition``."""
    if sink == "grouped":
        from forebay.spark import repartition

        return write(repartition(frame, options), "forebay", options)
    taken = options if sink not in ("noop", "bare") else {}
    frame.write.format(sink).mode("overwrite" if sink == "noop" else "append").options(**taken).save()


def open_session(work: dict[str, Any]) -> SparkSession:
    builder = SparkSession.builder.master(work["master"]).config("spark.ui.enabled", "false")
    for key, value in work["conf"].items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    from bench.spark_session import Bare
    from forebay.spark import register

    session.dataSource.register(Bare)
    register(session)
    return session


def main(work: dict[str, Any]) -> None:
    """Does the runs in their order; a line of JSON for each, when it has ended."""
    session = open_session(work)
    # Spark's own file splits would give one sink full tasks and the next the rest.
    session.conf.set("spark.sql.files.maxPartitionBytes", "64m")
    frames: dict[tuple[str, int], DataFrame] = {}
    for run in work["runs"]:
        made = (run["value"], run["rows"])
        if made not in frames:
            frames[made] = rows_of(session, *made, Path(work["folder"]))
        before, begun = tree_cpu_s(), time.perf_counter()
        write(frames[made], run["sink"], run["options"])
        seconds, cpu = time.perf_counter() - begun, tree_cpu_s() - before
        print(json.dumps({"seconds": seconds, "cpu_s": cpu}), flush=True)
    session.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
