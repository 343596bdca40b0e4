"""`make demo`: 336,776 flights through Spark into Kafka, and every one of them read back and compared.

python -m demo.run [--bootstrap host:port] [--partitions 6] [--master local[2]]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from demo.check import Verdict, compare, expected_rows
from demo.data import DemoError, unpack
from demo.reader import ReadBack
from forebay.errors import KafkaError
from forebay.pipeline import Job, load
from forebay.spark.jobs.frames import build_frame, map_rows
from forebay.spark.jobs.runner import write
from forebay.spark.jobs.session import open_session
from tools.spark_jvm import quick_start
from tools.times import note, noted

JOB = Path(__file__).parent / "flights.toml"
REFRESH_S = 0.2
NEXT = (
    ("forebay broker --port 9092", "an embedded broker to send to, until Ctrl-C"),
    ("forebay perf -b localhost:9092 -t t --num-records 1000000 --record-size 100", "how fast it takes records"),
    ("make test", "what finds faults, in ten minutes"),
)
"""Commands to try after the demo, and what they do."""


@dataclass
class Outcome:
    """What the table at the end shows."""

    counters: Mapping[str, Any]
    read: list[int]
    verdict: Verdict
    begun_ms: float
    """When the write began, Unix time: until its first row Spark plans, and starts its workers."""
    alone_s: float
    """What Spark needed for the same rows into a sink that drops them."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the demo; 0 only if every row arrived once and unchanged."""
    options = _parse(arguments)
    # stdout may be a file or a pipe: the table goes there, the moving parts to the terminal behind stderr.
    console = Console(stderr=True)
    try:
        with tempfile.TemporaryDirectory(prefix="forebay-demo-") as folder, _cluster(options) as bootstrap:
            outcome = _run(options, Path(folder), bootstrap, console)
    except (DemoError, KafkaError) as error:
        console.print(f"[red]error:[/red] {error}", highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("interrupted")
        return 130
    Console().print(table_of(outcome))
    for example in outcome.verdict.examples:
        console.print(example)
    if options.times:
        _show_times(options.times, options.begun)
    complete = outcome.verdict.ok and sum(outcome.read) == outcome.counters.get("acknowledged")
    return 0 if complete else 1


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo.run", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--bootstrap", help="a Kafka cluster of yours, host:port; without it the embedded broker")
    parser.add_argument("--topic", help="default: a new one, named after this process")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--master", default=None, help="Spark master; default: the job file's")
    parser.add_argument(
        "--times", type=Path, help="`make demo` alone: the folder where the times of its parts are noted"
    )
    parser.add_argument("--begun", type=float, default=time.time(), help="when it began, in seconds since 1970")
    return parser.parse_args(arguments)


@contextmanager
def _cluster(options: argparse.Namespace) -> Iterator[str]:
    options.topic = options.topic or f"flights-{os.getpid()}"
    if options.bootstrap:
        _create_topic(options.bootstrap, options.topic, options.partitions)
        yield options.bootstrap
        return
    from forebay.testing import EmbeddedBroker

    with EmbeddedBroker(topics={options.topic: options.partitions}) as broker:
        yield broker.bootstrap_servers


def _create_topic(bootstrap: str, topic: str, partitions: int) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        admin.create_topics([NewTopic(topic, partitions)], request_timeout=15)[topic].result()
    except KafkaException as error:
        raise DemoError(f"topic {topic!r} cannot be created on {bootstrap}: {error.args[0].str()}") from None


def _run(options: argparse.Namespace, folder: Path, bootstrap: str, console: Console) -> Outcome:
    total = unpack(folder)
    overrides = {"producer.bootstrap.servers": bootstrap, "sink.topic": options.topic}
    overrides |= {f"sources.{name}.path": str(folder / f"{name}.csv") for name in ("flights", "airlines", "planes")}
    if options.master:
        overrides["spark.master"] = options.master
    job = load(JOB, overrides)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", quick_start(make=False))
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress, _Parts(options.times) as parts:
        task = progress.add_task("starting Spark", total=total)

        def say(text: str) -> None:
            parts.begin(text)
            progress.update(task, description=text)

        say("starting Spark")
        session = open_session(job)
        session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        try:
            frame = map_rows(job, build_frame(job, session))
            reader = ReadBack(bootstrap, options.topic, options.partitions)
            with _following(lambda: progress.update(task, completed=reader.count)):
                say("writing and reading back")
                begun_ms = time.time() * 1000
                counters = _write(job, frame, reader)
                reader.finish()
            alone_s = _alone_s(frame, say)
            say("computing the rows again, without Kafka")
            frame.write.parquet(str(folder / "expected"))
        finally:
            session.stop()
        say("comparing")
        expected = expected_rows(folder / "expected", options.partitions)
        progress.update(task, completed=reader.count, description="done")
    return Outcome(counters, reader.per_partition, compare(expected, reader.read, reader.where), begun_ms, alone_s)


def _alone_s(frame: Any, say: Callable[[str], None]) -> float:
    """The seconds of the job's own query, whose rows nobody takes."""
    say("the same rows, dropped by Spark")
    begun = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - begun


class _Parts:
    """Notes how long each part took in ``folder``, if there is one."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._part = ""
        self._since = 0.0

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, *error: object) -> None:
        self.begin("")

    def begin(self, part: str) -> None:
        now = time.monotonic()
        if self._folder is not None and self._part:
            note(self._folder, self._part, now - self._since)
        self._part, self._since = part, now


def _show_times(folder: Path, begun: float) -> None:
    """The time of each part since ``begun``, and what to try next."""
    table = Table(title="seconds", show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    for part, seconds in noted(folder, begun).items():
        table.add_row(part, f"{seconds:.1f}")
    table.add_row("all, packages and compile side by side", f"{time.time() - begun:.1f}", style="bold")
    console = Console()
    console.print(table)
    console.print(f"Next, after [bold]source {folder}/bin/activate[/bold]:", highlight=False)
    for command, what in NEXT:
        console.print(f"  [bold]{command}[/bold]  # {what}", highlight=False, soft_wrap=True)


def _write(job: Job, frame: Any, reader: ReadBack) -> Mapping[str, Any]:
    counters = write(job, frame)
    if reader.error is not None:
        raise DemoError(f"the independent reader failed: {reader.error}")
    return counters


@contextmanager
def _following(refresh: Callable[[], None]) -> Iterator[None]:
    """Calls ``refresh`` a few times a second while the body runs."""
    done = Event()

    def follow() -> None:
        while not done.wait(REFRESH_S):
            refresh()

    thread = Thread(target=follow, name="demo-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def table_of(outcome: Outcome) -> Table:
    """The figures of a run, with Spark's own share of its time, which nobody should take for the sink's."""
    counters = outcome.counters
    seconds = (counters["finished_ms"] - counters["started_ms"]) / 1000 if counters.get("rows") else 0.0
    table = Table(title="flights", show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    table.add_row("rows in", f"{counters['rows']:,}")
    table.add_row("records acknowledged", f"{counters['acknowledged']:,}")
    table.add_row("records read back", f"{sum(outcome.read):,}")
    for partition, count in enumerate(outcome.read):
        table.add_row(f"  partition {partition}", f"{count:,}")
    table.add_row("bytes sent", f"{counters['bytes_sent']:,}")
    table.add_row("bytes before compression", f"{counters['bytes_raw']:,}")
    table.add_row("compression ratio", f"{counters['compression_ratio']:.3f}")
    table.add_row("batches", f"{counters['batches']:,}")
    table.add_row("average fill, before compression", f"{counters['average_fill']:.0%} of batch.size")
    if seconds:
        before = (counters["started_ms"] - outcome.begun_ms) / 1000
        table.add_row("seconds until the first row (Spark)", f"{before:.2f}")
        table.add_row("seconds, first row to last ack", f"{seconds:.2f}")
        table.add_row("  Spark alone, the rows dropped", f"{outcome.alone_s:.2f}")
        table.add_row("  workers, sink, broker, reader", f"{max(seconds - outcome.alone_s, 0.0):.2f}")
    table.add_row("rows/s, all of these", f"{counters['rows'] / seconds:,.0f}" if seconds else "-")
    table.add_row("comparison", str(outcome.verdict), style="green" if outcome.verdict.ok else "red")
    return table


if __name__ == "__main__":
    sys.exit(main())
