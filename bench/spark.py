"""``df.write`` by this package's sink and by Spark's own (spark-sql-kafka-0-10), into a sink that only acknowledges.

Each case has its rows in Parquet and the same Kafka options for both.  All four ways run in one Spark session, turn
about, after a round that is not counted: ``noop`` only reads the rows, ``bare`` is a Python writer that counts its
Arrow rows, and what a sink costs is its CPU time less that of ``noop``.  ``--sinks noop,forebay,grouped --partitions
200`` shows what ``forebay.spark.repartition`` gives.

Spark's own sink needs jars that fit PySpark, from Maven; without ``--jars`` it is left out.  ``--python`` names the
interpreter of an environment with another PySpark.  ``--tuned`` sets what the pipeline runner sets; the targets mean
that.  The cases called "defaults" leave sizes and linger to each sink.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench import goals
from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.sink import AcknowledgingSink
from bench.support import ROOT, ChildFailed, child_environment, say

PARTITIONS = 6
OURS, GROUPED, SPARKS = "forebay", "grouped", "kafka"


class Case(NamedTuple):
    """What is written: a kind of value, how many rows, and the options that differ."""

    value: str
    rows: int
    batch_size: int
    """Bytes; 0 leaves that and all that goes with it to the sink."""
    codec: str = "none"

    def label(self) -> str:
        """As it stands in tables."""
        if not self.batch_size:
            return f"{self.value}, defaults"
        size = f"{self.batch_size >> 10} KiB" if self.batch_size < 1 << 20 else f"{self.batch_size >> 20} MiB"
        return f"{self.value}{'' if self.codec == 'none' else ' ' + self.codec}, {size}"


CASES = (
    *(
        Case(value, rows, size, codec)
        for value, rows, codec in (
            ("100 B", 6_000_000, "none"),
            ("1,000 B", 1_500_000, "none"),
            ("JSON", 3_000_000, "zstd"),
            ("JSON", 3_000_000, "lz4"),
        )
        for size in (16 << 10, 1 << 20)
    ),
    Case("100 B", 6_000_000, 0),
    Case("1,000 B", 1_500_000, 0),
)


def options_of(case: Case, servers: str, topic: str) -> dict[str, str]:
    """The same for both sinks."""
    options = {"topic": topic, "kafka.bootstrap.servers": servers, "kafka.compression.type": case.codec}
    if not case.batch_size:
        return options
    return options | {
        "kafka.batch.size": str(case.batch_size),
        "kafka.linger.ms": "5",
        # For full batches of six partitions and as many on the way.
        "kafka.buffer.memory": str(64 << 20),
    }


def runs_of(cases: list[Case], sinks: list[str], rounds: int, servers: str) -> list[dict[str, Any]]:
    """Every run in its order; round 0 warms the JVM up."""
    runs: list[dict[str, Any]] = []
    for case in cases:
        for number in range(rounds + 1):
            for sink in turned(sinks, number):
                topic = f"run-{len(runs)}"
                options = options_of(case, servers, topic)
                same = {"label": case.label(), "sink": sink, "value": case.value, "rows": case.rows, "topic": topic}
                runs.append({**same, "round": number, "options": options})
    return runs


def conf_of(options: argparse.Namespace) -> dict[str, str]:
    conf = {"spark.driver.memory": "2g"}
    if options.jars:
        jars = ",".join(str(path) for path in sorted(Path(options.jars).glob("*.jar")))
        conf["spark.jars"] = jars
        # The driver's class path, not the one for executors: a local session serves both.
        conf["spark.driver.extraClassPath"] = jars.replace(",", ":")
    if options.tuned:
        from forebay.spark.jobs.session import DEFAULT_CONF

        conf |= DEFAULT_CONF
    return conf | dict(pair.split("=", 1) for pair in options.conf)


def measured(options: argparse.Namespace, runs: list[dict[str, Any]], sink: AcknowledgingSink) -> Iterator[Any]:
    """The runs with their figures, as they come; a run's records are counted where they arrived."""
    work = {"master": options.master, "conf": conf_of(options), "folder": options.folder, "runs": runs}
    command = [options.python, "-m", "bench.spark_session", json.dumps(work)]
    environment = child_environment()
    environment["PYTHONPATH"] += f":{ROOT / 'src'}"
    environment |= {"PYSPARK_PYTHON": options.python, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True) as child,
    ):
        assert child.stdout is not None
        try:
            for run in runs:
                before = sink.summary()
                line = child.stdout.readline()
                if not line:
                    errors.seek(0)
                    raise ChildFailed(f"bench.spark_session: {errors.read()[-2000:]}")
                after = sink.summary()
                if run["sink"] in (OURS, GROUPED, SPARKS) and after["records"].get(run["topic"]) != run["rows"]:
                    raise ChildFailed(f"{after['records'].get(run['topic'])} of {run['rows']} rows arrived: {run}")
                say(f"{run['label']}, {run['sink']}: {line.strip()}")
                counts = {name: after[name] - before[name] for name in ("requests", "bytes", "batches")}
                yield {**run, **json.loads(line), **counts}
        finally:
            child.terminate()


def measure(options: argparse.Namespace) -> Result:
    cases = [case for case in CASES if options.only.lower() in case.label().lower()]
    sinks = ["noop", "bare", OURS, *([SPARKS] if options.jars else [])]
    if options.sinks:
        sinks = options.sinks.split(",")
    with AcknowledgingSink(options.partitions) as sink, tempfile.TemporaryDirectory(prefix="bench-spark-") as folder:
        options.folder = options.folder or folder
        runs = runs_of(cases, sinks, options.rounds, sink.bootstrap_servers)
        found = [run for run in measured(options, runs, sink) if run["round"] > 0]
    figures = list(figures_of(found))
    return result_of("spark", figures, ratios=ratios_of(figures))


def figures_of(found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The runs' figures by the row; CPU over that of ``noop`` in the same round."""
    reading = {(run["label"], run["round"]): run["cpu_s"] for run in found if run["sink"] == "noop"}
    for run in found:
        if run["sink"] == "noop":
            continue
        yield {
            "label": f"{run['label']}, {run['sink']}",
            "rows_per_s": run["rows"] / run["seconds"],
            "cpu_s_per_million": (run["cpu_s"] - reading.get((run["label"], run["round"]), 0)) / run["rows"] * 1e6,
            "requests_per_mib": run["requests"] / (run["bytes"] / 2**20) if run["bytes"] else 0.0,
        }


def ratios_of(figures: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """This sink's medians over those of Spark's own, by case."""
    medians = result_of("", figures)["figures"]
    ratios = {}
    for label, theirs in medians.items():
        case, _, sink = label.rpartition(", ")
        ours = medians.get(f"{case}, {OURS}")
        if sink == SPARKS and ours:
            ratios[case] = {
                name: ours[name].median / theirs[name].median for name in ("cpu_s_per_million", "rows_per_s")
            }
    return ratios


def show(result: Result) -> None:
    settings = result["settings"]
    print(f"DataFrames into Kafka, median (lowest-highest) of {settings['rounds']} runs\n")
    columns = (
        Column("1,000 rows/s", "rows_per_s", ".0f", 1e-3),
        Column("CPU s/million over noop", "cpu_s_per_million", ".2f"),
        Column("requests/MiB", "requests_per_mib", ".2f"),
    )
    print_figures(result, columns, "case, sink")
    for case, ratio in result["ratios"].items():
        print(f"{case}: CPU {ratio['cpu_s_per_million']:.2f} of Spark's own, rows/s {ratio['rows_per_s']:.2f}")
    if result["ratios"]:
        print()
        goals.show([found for found in goals.verdicts({"spark": result}) if found.goal.what == "DataFrames"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--python", default=sys.executable, help="of an environment with PySpark (default: this one)")
    parser.add_argument("--jars", default="", metavar="FOLDER", help="of Spark's own sink and what it needs")
    parser.add_argument("--master", default="local[2]", help="(default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this text in their label")
    parser.add_argument("--sinks", default="", metavar="NAME,...", help="of noop, bare, forebay, grouped, kafka")
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="of the topics (default: %(default)s)")
    parser.add_argument("--folder", default="", help="keeps the Parquet files there for the next time")
    parser.add_argument("--tuned", action="store_true", help="with the settings of the pipeline runner")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark")
    add_rounds(parser, 3)


PART = Part("spark", __doc__, add_arguments, measure, show, full=("--only", "1 MiB", "--tuned"), quick=None)
