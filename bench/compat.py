"""Instructions of a record in each drop-in class, and in the native producer for the same work.

Whole clients are counted by callgrind, from ``send`` to the acknowledgement, the sender's thread included.  Each does
the work of ``bench.clients`` twice, with few records and with many, into a sink in another process.  The difference,
divided by the records, is the cost of one more.  The system decides how many turns the sender takes, so each runs
several times.
"""

from __future__ import annotations

import argparse
import shutil
from typing import Any, NamedTuple

from bench.instructions import counted
from bench.part import Column, Part, Result, add_rounds, figures_of, print_figures, result_of
from bench.sink import AcknowledgingSink
from bench.support import ChildFailed, run_child, say

FEW, MANY = 4_000, 44_000
"""Records in the two runs."""
WORKS: dict[str, dict[str, bool]] = {
    "plain": {"callback": False},
    "callback": {"callback": True},
    "key and 2 headers": {"callback": False, "keyed": True},
}


class Case(NamedTuple):
    """One kind of work by one client of ``bench.clients``, and by the native producer that it is compared with."""

    work: str
    client: str
    native: str

    @property
    def label(self) -> str:
        return f"{self.client}, {self.work}"

    @property
    def native_label(self) -> str:
        return f"{self.native}, {self.work}"


CLASSES = (
    ("forebay", "forebay"),
    ("forebay as kafka-python", "forebay"),
    ("forebay as confluent-kafka", "forebay"),
    ("forebay aio", "forebay aio"),
    ("forebay as aiokafka", "forebay aio"),
)
CASES = tuple(
    Case(work, client, native)
    for client, native in CLASSES
    for work in WORKS
    if not (work == "key and 2 headers" and native == "forebay aio")  # of them bench.clients has no such work
)
COLUMNS = (Column("instructions a record", "instructions", ",.0f"), Column("over the native call", "over_native"))


def count(case: Case, bootstrap: str) -> float:
    """Instructions of one more record.

    Raises:
        ChildFailed: valgrind or the client failed.
    """
    work: dict[str, Any] = {"client": case.client, "topic": "compat", "bootstrap": bootstrap, "config": {}}
    work |= {"size": 100, "linger_ms": 5, **WORKS[case.work]}
    run_child("bench.clients", {**work, "records": 1})  # a first run writes bytecode, which is not to be counted
    few, many = (counted("bench.clients", {**work, "records": records}) for records in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def measure(options: argparse.Namespace) -> Result:
    if shutil.which("valgrind") is None:
        raise ChildFailed("valgrind is not installed")
    wanted = [case for case in CASES if options.only in case.label]
    runs: list[dict[str, Any]] = []
    with AcknowledgingSink(1) as sink:
        for _ in range(options.rounds):
            for case in wanted:
                runs.append({"label": case.label, "instructions": count(case, sink.bootstrap_servers)})
                say(f"{case.label:50} {runs[-1]['instructions']:8,.0f} instructions a record")
    figures, natives = figures_of(runs), {case.label: case.native_label for case in wanted}
    for run in runs:
        if (native := figures.get(natives[run["label"]])) is not None:
            run["over_native"] = run["instructions"] / native["instructions"].median
    order = [case.label for case in wanted]
    return result_of("compat", sorted(runs, key=lambda run: order.index(run["label"])))


def show(result: Result) -> None:
    print("\n100 B values, linger 5 ms, a sink that only acknowledges, median (lowest-highest)\n")
    print_figures(result, COLUMNS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose label has this text")
    add_rounds(parser, default=3)


PART = Part("compat", __doc__, add_arguments, measure, show, quick=None)
