"""``python -m tests.kill --kills N --seed S``: every kind of kill, again and again, on a Kafka of its own.

Its status is 1 when a row was lost or doubled, 2 when there is no Kafka to be had.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.kill.points import CLUSTER, LOCAL, Point, drawn
from tests.kill.run import Run
from tests.spark.clusters import standalone
from tools.kafka import JarsUnavailable, KafkaFailed, RealKafka

PROPERTIES = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
EACH = 9
"""Kills in one stream."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description="Kills in exactly-once streams.")
    parser.add_argument("--kills", type=int, default=60, help="how many (default: %(default)s)")
    parser.add_argument("--seed", default=None, help="repeats the order of kills of the run that printed it")
    parser.add_argument("--only", default="", metavar="NAME,...", help=f"of {', '.join(point.name for point in Point)}")
    parser.add_argument("--nodes", type=int, default=1, help="brokers (default: %(default)s)")
    options = parser.parse_args()
    seed = options.seed or str(time.time_ns() // 1_000_000)
    points = tuple(Point[name] for name in options.only.split(",")) if options.only else tuple(Point)
    print(f"kill: {options.kills} kills, --seed {seed}", flush=True)
    try:
        with RealKafka(nodes=options.nodes, properties=PROPERTIES, quick_start=True) as kafka:
            found = play(kafka, seed, options.kills, points)
    except (JarsUnavailable, KafkaFailed) as error:
        print(f"kill: {error}", file=sys.stderr)
        return 2
    except AssertionError as error:
        print(f"kill: {error}; repeat with --seed {seed}", file=sys.stderr)
        return 1
    for point, number in sorted(found.items(), key=lambda pair: pair[0].name):
        print(f"  {number:4} {point.value}")
    print(f"kill: {sum(found.values())} kills, every row is there once")
    return 0


def play(kafka: RealKafka, seed: str, kills: int, points: tuple[Point, ...]) -> Counter[Point]:
    """Streams with kills until there were enough; those that need executors of their own are in streams that have them.

    Every second stream in the driver's own process has a shuffle in each micro-batch, and loses its files.
    """
    found: Counter[Point] = Counter()
    plan = drawn(seed, kills, points)
    for kind, wanted in (("local", LOCAL), ("cluster", CLUSTER)):
        chosen = [point for point in plan.values() if point in wanted]
        for number, first in enumerate(range(0, len(chosen), EACH)):
            part = dict(enumerate(chosen[first : first + EACH]))
            with tempfile.TemporaryDirectory(prefix="forebay-kill-", ignore_cleanup_errors=True) as folder:
                retries = kind == "local" and number % 2 == 0
                found += played(kafka, Path(folder), f"kill-{seed}-{kind}-{number}", part, retries)
    return found


def played(kafka: RealKafka, folder: Path, name: str, points: dict[int, Point], retries: bool) -> Counter[Point]:
    """The kills of one stream."""
    apart = bool({*points.values()} & {*CLUSTER})
    with standalone(folder, 2, 2) if apart else contextlib.nullcontext("local[3,4]") as master:
        run = Run(kafka, folder, name, points, master=master, retries=retries)
        outcome = run.play(lambda text: print(text, flush=True))
    print(f"{name}: {outcome.rows} rows, each there once; {outcome.retries} stages attempted again", flush=True)
    return outcome.kills


if __name__ == "__main__":
    sys.exit(main())
