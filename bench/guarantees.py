"""What exactly-once costs a Spark write over at-least-once, on a real Kafka: a large write, and one of 1,000 rows.

``noop`` only reads the rows; a row's CPU time is over that.  All ways take turns in one Spark session.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.spark import Case, options_of
from bench.support import ROOT, ChildFailed, child_environment, say
from tools.kafka import RealKafka

PARTITIONS = 6
NOOP, LEAST, EXACTLY = "noop", "at least once", "exactly once"
CASES = (Case("100 B", 1_000_000, 1 << 20), Case("100 B", 1_000, 1 << 20))


def runs_of(kafka: RealKafka, rounds: int) -> list[dict[str, Any]]:
    """Every run in its order, each into a topic of its own; round 0 warms the JVM up."""
    runs: list[dict[str, Any]] = []
    for case in CASES:
        for number in range(rounds + 1):
            for way in turned([NOOP, LEAST, EXACTLY], number):
                topic = f"guarantee-{len(runs)}"
                options = options_of(case, kafka.bootstrap_servers, topic)
                if way == EXACTLY:
                    options |= {"deliveryGuarantee": "exactly-once", "transactionalIdPrefix": "bench"}
                if way != NOOP:
                    kafka.create_topic(topic, PARTITIONS)
                sink = NOOP if way == NOOP else "forebay"
                same = {"label": f"{case.rows:,} rows, {way}", "way": way, "value": case.value, "rows": case.rows}
                runs.append({**same, "sink": sink, "round": number, "options": options})
    return runs


def measured(options: argparse.Namespace, runs: list[dict[str, Any]], folder: str) -> Iterator[dict[str, Any]]:
    """The runs with their figures."""
    work = {"master": options.master, "conf": {"spark.driver.memory": "1g"}, "folder": folder, "runs": runs}
    environment = child_environment()
    environment["PYTHONPATH"] += f":{ROOT / 'src'}"
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "bench.spark_session", json.dumps(work)]
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True, check=False)
        lines = done.stdout.splitlines()
        if len(lines) != len(runs):
            errors.seek(0)
            raise ChildFailed(f"bench.spark_session: {errors.read()[-2000:]}")
    for run, line in zip(runs, lines, strict=True):
        say(f"{run['label']}: {line.strip()}")
        yield {**run, **json.loads(line)}


def measure(options: argparse.Namespace) -> Result:
    with RealKafka(quick_start=True) as kafka, tempfile.TemporaryDirectory(prefix="bench-guarantees-") as folder:
        found = [run for run in measured(options, runs_of(kafka, options.rounds), folder) if run["round"] > 0]
    reading = {(run["rows"], run["round"]): run for run in found if run["way"] == NOOP}
    figures = []
    for run in found:
        noop = reading[run["rows"], run["round"]]
        over = {"cpu_s_over": run["cpu_s"] - noop["cpu_s"], "seconds_over": run["seconds"] - noop["seconds"]}
        figures.append({"label": run["label"], "seconds": run["seconds"], "cpu_s": run["cpu_s"], **over})
    return result_of("guarantees", figures)


def show(result: Result) -> None:
    columns = (
        Column("s", "seconds"),
        Column("s over noop", "seconds_over"),
        Column("CPU s", "cpu_s"),
        Column("CPU s over noop", "cpu_s_over"),
    )
    print_figures(result, columns, "write")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--master", default="local[2]", help="(default: %(default)s)")
    add_rounds(parser, 3)


PART = Part("guarantees", __doc__, add_arguments, measure, show, quick=None)
