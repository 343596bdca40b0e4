"""``make bench``: every bench in turn, then the page, then the table of targets: target, measured, met or not.

``--quick`` takes about ten minutes and is good enough to see what moved; the targets are judged by the full form,
which takes most of two hours on two cores, because it waits for a quiet machine before each bench.  A bench that fails
is named and the others go on.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from bench import (
    append,
    batch_cost,
    cli,
    codecs,
    columns,
    compat,
    footprint,
    goals,
    guarantees,
    in_flight,
    instructions,
    latency,
    many,
    memory,
    micro_batches,
    page,
    partitions,
    peers,
    quiet,
    rows_json,
    sender_cost,
    spark,
    startup,
    telemetry,
    threads,
    tls,
    tls_sink,
    transactional_ids,
)
from bench.part import Part, Result
from bench.support import ChildFailed, machine, save, say
from tools.kafka import JarsUnavailable, KafkaFailed

PARTS: dict[str, Part] = {
    module.PART.name: module.PART
    for module in (
        peers, sender_cost, columns, spark, guarantees, codecs, latency, footprint, batch_cost, partitions, threads,
        startup, many, append, memory, tls, tls_sink, instructions, compat, rows_json, telemetry, cli,
        transactional_ids, micro_batches, in_flight,
    )
}  # fmt: skip


class Step(NamedTuple):
    """A bench with arguments beside those of the form."""

    part: Part
    arguments: tuple[str, ...] = ()


STEPS = (
    Step(PARTS["peers"]),
    Step(PARTS["peers"], ("--sink",)),
    *(Step(PARTS[name]) for name in ("sender", "columns", "codecs", "latency")),
    # Without a broker beside, on the same processors, that needs more of them than the client.
    Step(PARTS["latency"], ("--sink",)),
    *(
        Step(PARTS[name])
        for name in (
            "footprint",
            "batch-cost",
            "partitions",
            "threads",
            "startup",
            "many",
            "append",
            "memory",
            "spark",
            "guarantees",
            "tls",
            "tls-sink",
            "instructions",
            "compat",
            "rows",
            "telemetry",
            "cli",
            "transactional-ids",
            "micro-batches",
            "in-flight",
        )
    ),
)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs: about ten minutes")
    parser.add_argument("--only", default="", metavar="NAME,...", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, help="of every bench, instead of its own number")
    options = parser.parse_args(arguments)
    unknown = {name.strip() for name in options.only.split(",") if name.strip()} - set(PARTS)
    if unknown:
        parser.error(f"--only: there is no bench {', '.join(sorted(unknown))}, only {', '.join(PARTS)}")
    return options


def chosen(options: argparse.Namespace) -> list[tuple[Step, tuple[str, ...]]]:
    """The steps to run, each with its arguments."""
    names = {name.strip() for name in options.only.split(",") if name.strip()}
    found = []
    for step in STEPS:
        given = step.part.quick if options.quick else step.part.full
        if (names and step.part.name not in names) or (given is None and not names):
            continue
        rounds = ("--rounds", str(options.rounds)) if options.rounds and takes_rounds(step.part) else ()
        found.append((step, (*(given or ()), *step.arguments, *rounds)))
    return found


def takes_rounds(part: Part) -> bool:
    parser = argparse.ArgumentParser()
    part.add_arguments(parser)
    return "--rounds" in parser.format_usage()


def run(options: argparse.Namespace) -> int:
    """All steps; 1 if one failed, whatever the targets say: those missed are in the table, not in the status."""
    results: dict[str, Result] = {}
    failed: list[str] = []
    about, begun = machine(), time.monotonic()
    for step, arguments in chosen(options):
        print(f"\n== {step.part.name} {' '.join(arguments)}\n", flush=True)
        try:
            result = step.part.run(arguments, None if options.quick else quiet.state())
        except (ChildFailed, KafkaFailed, JarsUnavailable, RuntimeError) as error:
            failed.append(f"{step.part.name} {' '.join(arguments)}: {error}")
            say(f"bench: {failed[-1]}")
            continue
        results[result["name"]] = result
        failed.extend(result.get("failed", ()))
    found = goals.verdicts(results)
    print(f"\n== targets, after {(time.monotonic() - begun) / 60:.0f} minutes\n")
    goals.show(found)
    cells = [dict(zip(goals.HEADS, verdict.cells(), strict=True)) for verdict in found]
    kept = save("targets", {"machine": about, "settings": vars(options), "targets": cells, "failed": failed})
    print(f"\nwritten to {kept}, drawn in {page.write()}")
    for line in failed:
        say(f"bench: failed: {line}")
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    return run(parse(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
