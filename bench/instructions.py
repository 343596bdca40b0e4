"""Instructions of the hot functions, counted by callgrind: figures that a busy machine does not change.

Each piece of work runs twice, with few calls and with many, in a child under valgrind.  The child counts inside one
compiled function, or everywhere.  The difference, divided by the calls, is the cost of one more call.  ``send`` is
counted while nothing is sent; the sender's turn is counted while batches go to a sink in another process.  The system
decides how many turns there are, so those cases run several times.  The sum of the whole process varies least.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.append import LOOPS, STILL, Loop
from bench.part import Part, Result, result_of
from bench.sink import AcknowledgingSink
from bench.support import ROOT, ChildFailed, Spread, child_environment, print_table, work_of_child

FEW, MANY = 2_000, 12_000
"""Calls in the two runs."""
RECORDS_A_BATCH = 148
RUNS = 3
"""Of a case that sends; an idle one counts the same within one in a hundred."""
COLLECTED = re.compile(r"Collected : (\d+)")


class Case(NamedTuple):
    """A loop, what is counted in it (the whole process, if no function is named), and how many calls make a unit."""

    label: str
    loop: str
    module: str
    function: str
    calls_a_unit: int = 1
    still: bool = True
    fewer: int = 1
    """By how much both runs are shorter, where a call is long."""


def one_record(producer: Any, requests: int) -> None:
    """Each acknowledgement is waited for: every request has one record, and turns of its own."""
    send, value = producer.send, bytes(100)
    for _ in range(requests):
        send("append", value).result(60)


ONE_RECORD = "one record"
LOOPS_HERE: dict[str, Loop] = {**LOOPS, ONE_RECORD: one_record}
TURN = ("_sender/sender", r"Sender_\d*run_once")
CASES = (
    *(Case(f"send: {name}", name, "producer/_path", r"SendPath_\d*send") for name in LOOPS),
    Case("sender's turns, a 16 KiB batch", "plain", *TURN, RECORDS_A_BATCH, False),
    Case("sender's turns, a request of one record", ONE_RECORD, *TURN, still=False, fewer=10),
    Case("the wait for it, result()", ONE_RECORD, "_delivery/future", r"RecordFuture_\d*result", still=False, fewer=10),
    Case("all of a request of one record", ONE_RECORD, "", "", still=False, fewer=10),
    Case("all of a 16 KiB batch and its sends", "plain", "", "", RECORDS_A_BATCH, False),
)


def symbol(case: Case) -> str:
    """The C function that Cython made of ``case.function``.

    Raises:
        ChildFailed: the package is not compiled, or ``nm`` is missing.
    """
    found = list((ROOT / "src" / "forebay").glob(f"{case.module}.*.so"))
    if not found or shutil.which("nm") is None:
        raise ChildFailed("instructions are counted in the compiled form (make build), and need nm")
    names = subprocess.run(["nm", str(found[0])], check=True, capture_output=True, text=True).stdout
    # What other compiled modules call (f), if there is one, for they go past what Python calls (pw).
    for kind in ("f", "pw"):
        matches = re.findall(rf"\b(__pyx_{kind}_\w*{case.function}(?:\.\w+)*)$", names, re.MULTILINE)
        if len(matches) == 1:
            return str(matches[0])
    raise ChildFailed(f"no single function of {found[0].name} matches {case.function}")


def count(case: Case, calls: int, bootstrap: str) -> int:
    """Instructions inside the function during so many calls.

    Raises:
        ChildFailed: valgrind failed.
    """
    work = {"loop": case.loop, "calls": calls, "still": case.still, "bootstrap": bootstrap}
    return counted("bench.instructions", work, [f"--toggle-collect={symbol(case)}"] if case.function else [])


def counted(module: str, work: dict[str, Any], options: Sequence[str] = ()) -> int:
    """Instructions of ``python -m module --child WORK`` under callgrind, all of them if no option says where.

    Raises:
        ChildFailed: valgrind or the child failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={Path(folder) / 'out'}"]
        command += [*options, sys.executable, "-m", module]
        done = subprocess.run(
            [*command, "--child", json.dumps(work)],
            env={**child_environment(), "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
    collected = COLLECTED.search(done.stderr)
    if done.returncode or collected is None:
        raise ChildFailed(f"valgrind: {done.stderr.strip().splitlines()[-1:]}")
    return int(collected[1])


def run_child(work: dict[str, Any]) -> None:
    """The loop in this process, which valgrind watches."""
    from forebay import KafkaProducer

    config = {"bootstrap.servers": work["bootstrap"], "buffer.memory": 256 << 20}
    config["linger.ms"] = 0 if work["loop"] == ONE_RECORD else 5
    with KafkaProducer({**config, **(STILL if work["still"] else {})}) as producer:
        producer.partitions_for("append")
        # A batch begins with the memory of the one before, so that what is counted begins with a batch that need not
        # grow.  Growing is a cost of the first batches of a partition, not of a send.
        LOOPS_HERE[work["loop"]](producer, MANY if work["still"] else 100)
        producer.flush()
        kept = LOOPS_HERE[work["loop"]](producer, work["calls"])
        producer.flush()
        del kept


def measure(options: argparse.Namespace) -> Result:
    if shutil.which("valgrind") is None:
        raise ChildFailed("valgrind is not installed")
    runs = []
    with AcknowledgingSink(1) as sink:
        for case in CASES:
            for _ in range((1 if case.still else RUNS) if options.only in case.label else 0):
                calls = [number // case.fewer for number in (FEW, MANY)]
                few, many = (count(case, number, sink.bootstrap_servers) for number in calls)
                each = (many - few) / (calls[1] - calls[0])
                runs.append({"label": case.label, "instructions": each * case.calls_a_unit})
    return result_of("instructions", runs)


def show(result: Result) -> None:
    rows = [(label, written(found["instructions"])) for label, found in result["figures"].items()]
    if result["settings"]["markdown"]:
        print(markdown(rows))
    else:
        print_table(("work", "instructions"), rows)


def written(found: Spread) -> str:
    """``median (lowest-highest)``; of one run the figure alone."""
    return f"{found.median:,.0f}" if found.low == found.high else found.text(",.0f")


def markdown(rows: Sequence[tuple[str, str]]) -> str:
    """The table as DESIGN.md keeps it."""
    lines = ["| `python -m bench instructions --markdown` | instructions |", "|---|---|"]
    return "\n".join([*lines, *(f"| {label} | {count} |" for label, count in rows)])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose label has this text")
    parser.add_argument("--markdown", action="store_true", help="the table that is kept in DESIGN.md")


PART = Part("instructions", __doc__, add_arguments, measure, show, quick=None)

if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.instructions is run by `python -m bench instructions`")
    run_child(given)
