"""Small micro-batches: how long Spark takes to add one of 1,000 rows, by each sink, on a real broker.

The time is ``addBatch`` of Spark's own progress: planning, the tasks, the commit, and for exactly once the sweep behind
it.  Each stream begins as soon as the one before has ended, in one session; its first micro-batches do not count.  What
``noop`` takes is Spark's alone, and so is what ``bare`` takes, a sink in Python that throws its rows away.  Spark's own
sink needs jars that fit PySpark (``--jars``), else it is left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from typing import Any

from bench.micro_batches_session import BARE, EXACTLY_ONCE, NOOP, OURS, ROWS, SPARKS
from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.spark import conf_of
from bench.support import CHILD_TIMEOUT_S, ROOT, ChildFailed, child_environment, say
from bench.target import HEAP_MB
from tools.kafka import RealKafka


def measure(options: argparse.Namespace) -> Result:
    sinks = [NOOP, BARE, *([SPARKS] if options.jars else []), OURS, EXACTLY_ONCE]
    runs = [sink for number in range(options.rounds + 1) for sink in turned(sinks, number)]
    with RealKafka(heap_mb=HEAP_MB) as kafka, tempfile.TemporaryDirectory(prefix="bench-micro-") as folder:
        kafka.create_topic("micro", 6)
        work = {"master": options.master, "conf": conf_of(options), "folder": folder, "runs": runs}
        work |= {"bootstrap": kafka.bootstrap_servers, "batches": options.batches, "tasks": options.tasks}
        found = lines_of(options.python, work)
    # The first stream of each sink warms the JVM up.
    counted = list(zip(runs, found, strict=True))[len(sinks) :]
    return result_of("micro-batches", [{"label": sink, "ms": ms} for sink, taken in counted for ms in taken])


def lines_of(python: str, work: dict[str, Any]) -> list[list[float]]:
    """What the child printed.

    Raises:
        ChildFailed: it failed.
    """
    environment = child_environment()
    environment["PYTHONPATH"] += f":{ROOT / 'src'}"
    environment |= {"PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [python, "-m", "bench.micro_batches_session", json.dumps(work)],
        env=environment, capture_output=True, text=True, timeout=3 * CHILD_TIMEOUT_S, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ChildFailed(f"bench.micro_batches_session: {done.stderr[-2000:]}")
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    for sink, taken in zip(work["runs"], found, strict=True):
        say(f"{sink}: {sorted(taken)[len(taken) // 2]:.0f} ms")
    return found


def show(result: Result) -> None:
    settings = result["settings"]
    print(f"\nms to add a micro-batch of {ROWS:,} rows in {settings['tasks']} tasks, median (lowest-highest)\n")
    print_figures(result, [Column("addBatch, ms", "ms", ".0f")], first="sink")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--python", default=sys.executable, help="of an environment with PySpark (default: this one)")
    parser.add_argument("--jars", default="", metavar="FOLDER", help="of Spark's own sink and what it needs")
    parser.add_argument("--master", default="local[2]", help="(default: %(default)s)")
    parser.add_argument("--tasks", type=int, default=2, help="of a micro-batch (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=40, help="of each stream that count (default: %(default)s)")
    parser.add_argument("--tuned", action="store_true", help="with the settings of the pipeline runner")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark")
    add_rounds(parser, 1)


PART = Part("micro-batches", __doc__, add_arguments, measure, show, quick=None)
