"""Latency of this checkout beside an earlier one: what a change cost those who do not need it.

``--checkout`` names a built checkout with its ``.venv``.  Both send the same records at the same pace, turn about, each
run in a process of its own: to a real broker; to an embedded one behind a round trip of 50 ms; to three embedded ones
of which one is behind it; and there without keys, at a rate that nobody reaches, which is KIP-794's experiment.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.support import CHILD_TIMEOUT_S, ROOT, ChildFailed, say
from bench.target import HEAP_MB
from forebay.testing import EmbeddedBroker
from tools.kafka import RealKafka

CHILD = Path(__file__).with_name("earlier_sends.py")
DELAY_MS = 50
WARM_UP_S = 2
WARM_RATE = 10_000
UNREACHED = 1e9
"""Records/s that no client sends, so it goes as fast as it can."""
UNREACHED_RECORDS = 1_000_000
WAYS = ("kafka", "delayed", "slow-node", "keyless")
COLUMNS = (Column("p50 ms", "p50"), Column("p99 ms", "p99"), Column("records/s", "achieved_per_s", ".0f"))


class Case(NamedTuple):
    """What is sent: so many records a second to so many partitions."""

    partitions: int
    rate: float
    keyless: bool

    def label(self, way: str) -> str:
        rate = "as fast as it goes" if self.keyless else f"{self.rate:,.0f}/s"
        return f"{way}, {self.partitions:,} partitions, {rate}"

    def work(self, bootstrap: str, seconds: float) -> dict[str, Any]:
        """What the child is told."""
        counts = {"warm_up": int(self.rate * WARM_UP_S), "records": int(self.rate * seconds)}
        if self.keyless:
            counts = {"warm_up": UNREACHED_RECORDS // 10, "records": UNREACHED_RECORDS}
        return {"bootstrap": bootstrap, "topic": f"t{self.partitions}", **self._asdict(), **counts}


@contextmanager
def brokers(way: str, partitions: list[int]) -> Iterator[str]:
    """The bootstrap servers of a cluster with a topic ``t<partitions>`` for each number."""
    if way == "kafka":
        with RealKafka(heap_mb=HEAP_MB) as kafka:
            for number in partitions:
                kafka.create_topic(f"t{number}", number)
            yield kafka.bootstrap_servers
        return
    nodes = 1 if way == "delayed" else 3
    with EmbeddedBroker(nodes=nodes, topics={f"t{number}": number for number in partitions}) as embedded:
        embedded.set_rtt(DELAY_MS, node=None if way == "delayed" else nodes - 1)
        yield embedded.bootstrap_servers


def run_sends(checkout: Path, work: dict[str, Any]) -> dict[str, Any]:
    """One run by a checkout's own interpreter and sources.

    Raises:
        ChildFailed: it failed.
    """
    # -P keeps this folder, whose modules have names of the library's, off the child's path.
    command = [str(checkout / ".venv" / "bin" / "python"), "-P", str(CHILD), json.dumps(work)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CHILD_TIMEOUT_S, check=False, cwd=checkout)
    if done.returncode:
        raise ChildFailed(f"{checkout}: {done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def runs_of(way: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every case in turn; before each one run that does not count, faster than any, so that the broker is warm."""
    checkouts = {"earlier": Path(options.checkout).resolve(), "this one": ROOT}
    keyless = way == "keyless"
    rates = [UNREACHED] if keyless else options.rate
    found = []
    with brokers(way, options.partitions) as bootstrap:
        for case in [Case(partitions, rate, keyless) for partitions in options.partitions for rate in rates]:
            work = case.work(bootstrap, options.seconds)
            warm = case._replace(rate=max(case.rate, WARM_RATE))
            run_sends(ROOT, warm.work(bootstrap, options.seconds))
            for number in range(options.rounds):
                for name in turned(list(checkouts), number):
                    run = {"label": f"{name}, {case.label(way)}", **run_sends(checkouts[name], work)}
                    say(f"{run['label']:60} p50 {run['p50']:.2f} ms, p99 {run['p99']:.2f} ms")
                    found.append(run)
    return found


def measure(options: argparse.Namespace) -> Result:
    runs = [run for way in options.way for run in runs_of(way, options)]
    return result_of("earlier", runs)


def show(result: Result) -> None:
    print(f"\nfrom send to callback, median (lowest-highest) of {result['settings']['rounds']} runs\n")
    print_figures(result, COLUMNS, first="checkout")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkout", required=True, help="the earlier checkout's folder")
    parser.add_argument("--way", nargs="+", choices=WAYS, default=list(WAYS), help="(default: all)")
    parser.add_argument("--partitions", type=int, nargs="+", default=[6, 1000], help="(default: 6 1000)")
    parser.add_argument("--rate", type=float, nargs="+", default=[1_000, 10_000], help="(default: 1000 10000)")
    parser.add_argument("--seconds", type=float, default=4, help="a run (default: %(default)s)")
    add_rounds(parser)


PART = Part("earlier", __doc__, add_arguments, measure, show, full=(), quick=None)
