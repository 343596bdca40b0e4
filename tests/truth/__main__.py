"""``python -m tests.truth``: predictions beside a real Kafka, case by case, and eight wrong models beside the right.

Brokers and client are calibrated once, before the first run.  Each case runs with as many seeds as asked; a run in
which the machine stalled is taken again.  ``--to FILE`` keeps all of it, and ``--again FILE`` judges kept runs without
a broker.  ``--wrong`` judges the wrong models, too.  Status 1: a figure is outside its tolerance, or a wrong model was
not seen.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from forebay.tune import Broker, Brokers, Costs, own_costs
from forebay.tune.workload import Compression
from tests.truth import table
from tests.truth.cases import CASES, Case
from tests.truth.cluster import Cluster, cluster
from tests.truth.run import RunFailed, case_of, measured, values_of_events
from tests.truth.table import Figures, Row
from tests.truth.use import searched, used
from tests.truth.wrong import MODELS, Wrong
from tools.kafka import KAFKA_VERSION, JarsUnavailable, KafkaFailed

RUNS, AGAIN = 5, 3
"""Runs of a case; how many are taken again at most."""
WARM_UP = "J"
"""The case whose load the brokers get first, so that their code is compiled."""


def main() -> int:
    options = parse()
    letters = options.only.split(",") if options.only else [case.letter for case in CASES]
    cases = [case_of(letter) for letter in letters]
    if options.search:
        return searches(cases, options)
    if options.again is None:
        try:
            if options.advice:
                return advised(cases, options)
            kept = record(cases, options)
        except (JarsUnavailable, KafkaFailed, RunFailed) as error:
            print(f"truth: {error}", file=sys.stderr)
            return 2
        if options.to is not None:
            options.to.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    else:
        kept = json.loads(options.again.read_text(encoding="utf-8"))
        cases = [case for case in cases if case.letter in kept["runs"]]
    right = rows(cases, kept)
    for row in right:
        print(row.text())
    inside = sum(row.kept for row in right)
    print(f"{inside} of {len(right)} figures are within their tolerances")
    unseen = judge_wrong(cases, kept, right) if options.wrong else 0
    return 1 if unseen or inside < len(right) else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("--only", default="", metavar="A,B,...", help="of the cases A to M")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each case (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run (default: %(default)s)")
    parser.add_argument("--version", default=KAFKA_VERSION, help="of Kafka (default: %(default)s)")
    parser.add_argument("--to", type=Path, metavar="FILE", help="keep what was measured")
    parser.add_argument("--again", type=Path, metavar="FILE", help="judge what was kept; no broker is needed")
    parser.add_argument("--wrong", action="store_true", help="the wrong models, too")
    parser.add_argument("--advice", action="store_true", help="run what is proposed beside the defaults, instead")
    parser.add_argument("--grid", type=int, default=0, metavar="N", help="and N settings that are drawn")
    parser.add_argument(
        "--search", type=int, default=0, metavar="N", help="with --again: as --advice --grid, simulated"
    )
    options = parser.parse_args()
    if options.search and options.again is None:
        parser.error("--search: --again must name a file that --to has written, which has the brokers and the costs")
    return options


def record(cases: Sequence[Case], options: argparse.Namespace) -> dict[str, Any]:
    """Calibrates, and runs every case; what was measured, as JSON has it."""
    costs = own_costs.measured()
    compression = own_costs.compression_of(values_of_events(), "zstd")
    with started(cases, options) as kafka:
        runs = {case.letter: list(runs_of(kafka, case, options)) for case in cases}
        places = {place: [asdict(node) for node in found.nodes] for place, found in kafka.calibrations().items()}
    return {
        "kafka": options.version,
        "costs": asdict(costs),
        "compression": asdict(compression),
        "places": places,
        "runs": runs,
    }


def advised(cases: Sequence[Case], options: argparse.Namespace) -> int:
    """Prints what became of each advice; status 1 if one was bad."""
    costs = own_costs.measured()
    compression = own_costs.compression_of(values_of_events(), "zstd")
    bad = 0
    with started(cases, options) as kafka:
        for case in cases:
            found = used(kafka, case, costs, compression, runs=options.runs, seed=options.seed, drawn=options.grid)
            print(found.text(), flush=True)
            bad += not found.good
    return 1 if bad else 0


def searches(cases: Sequence[Case], options: argparse.Namespace) -> int:
    """Prints what each search would have missed, by the model; status 1 if that is much."""
    kept = json.loads(options.again.read_text(encoding="utf-8"))
    costs, compression = Costs(**kept["costs"]), Compression(**kept["compression"])
    bad = 0
    for case in cases:
        brokers = Brokers(tuple(Broker(**node) for node in kept["places"][case.place]))
        inputs = table.inputs_of(case, brokers, compression)
        found = searched(case, inputs, costs, seed=options.seed, drawn=options.search)
        print(found.text(), flush=True)
        bad += not found.good
    return 1 if bad else 0


@contextlib.contextmanager
def started(cases: Sequence[Case], options: argparse.Namespace) -> Iterator[Cluster]:
    """Brokers that are warm, and calibrated for these cases."""
    with cluster(options.version, heap_mb=512) as kafka:
        warm = case_of(WARM_UP)
        measured(kafka, warm, kafka.topic(warm.place, warm.partitions), 0, warm.settings)
        for case in cases:
            kafka.brokers(case.place)
        yield kafka


def runs_of(kafka: Cluster, case: Case, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The runs of a case, each with its seed."""
    found: list[dict[str, Any]] = []
    spare = AGAIN
    with kafka.under(case):
        topic = kafka.topic(case.place, case.partitions)
        seed = options.seed
        while len(found) < options.runs:
            run = measured(kafka, case, topic, seed, case.settings)
            again = table.stalled(run) and spare > 0
            stalls = table.stalls_of(run).p99
            print(
                f"{case.letter} {case.what}, seed {seed}: p50 {run['p50']:.2f} ms, p99 {run['p99']:.2f}, "
                f"{run['requests_s']:.0f} requests/s, stalls' p99 {stalls:.2f}{', taken again' if again else ''}",
                flush=True,
            )
            if again:
                spare -= 1
            else:
                found.append({"seed": seed, **run})
            seed += 1
    return found


def rows(cases: Sequence[Case], kept: Mapping[str, Any], model: Wrong = table.RIGHT) -> list[Row]:
    """Every case's rows, as a model predicts them."""
    costs = Costs(**kept["costs"])
    compression = Compression(**kept["compression"])
    found: list[Row] = []
    for case in cases:
        brokers = Brokers(tuple(Broker(**node) for node in kept["places"][case.place]))
        predictions: list[Figures] = []
        runs: list[Figures] = []
        for run in kept["runs"][case.letter]:
            inputs = table.inputs_of(case, brokers, compression, table.stalls_of(run))
            predictions.append(table.predicted(case, inputs, costs, run["seed"], model))
            runs.append(table.figures_measured(run, case))
        found += table.rows_of(case, predictions, runs)
    return found


def judge_wrong(cases: Sequence[Case], kept: Mapping[str, Any], right: Sequence[Row]) -> int:
    """Prints where each wrong model fails; how many do not."""
    unseen = 0
    for model in MODELS:
        failed = [
            f"{row.case} {row.name}"
            for row, before in zip(rows(cases, kept, model), right, strict=True)
            if before.kept and not row.kept
        ]
        unseen += not failed
        print(f"{model.name}: {'fails in ' + ', '.join(failed) if failed else 'NOT SEEN'}")
    return unseen


if __name__ == "__main__":
    sys.exit(main())
