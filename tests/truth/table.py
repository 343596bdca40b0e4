"""The truth table: medians of predicted and measured runs side by side, and which are within their tolerances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from forebay.tune import Brokers, Costs, Stalls, predict
from forebay.tune.checking import HOLD_TOLERANCE, LEAST_HOLD_MS, TOLERANCES
from forebay.tune.measures import POINTS
from forebay.tune.prediction import Prediction
from forebay.tune.stalls import STALLED
from forebay.tune.workload import Compression
from tests.truth.cases import Case
from tests.truth.run import load_of
from tests.truth.wrong import Inputs, Wrong

RECOVERY_TOLERANCE = 0.1
RIGHT = Wrong("as it is")
Figures = dict[str, float]


class Row(NamedTuple):
    """One figure of a case."""

    case: str
    name: str
    predicted: float
    measured: float
    allowed: float

    @property
    def kept(self) -> bool:
        """Whether the prediction is within its tolerance."""
        return abs(self.predicted - self.measured) <= self.allowed

    def text(self) -> str:
        """A line."""
        share = f"{self.predicted / self.measured - 1:+7.1%}" if self.measured else " " * 7
        end = "" if self.kept else "  outside"
        return f"{self.case}  {self.name:<18}{self.predicted:>12,.3f}{self.measured:>12,.3f}  {share}{end}"


def inputs_of(case: Case, brokers: Brokers, compression: Compression | None, stalls: Stalls | None = None) -> Inputs:
    """What the case's prediction is made of.

    Args:
        brokers: as calibrated for its place.
        compression: of the events.
    """
    load = load_of(case, "topic")
    if case.events:
        assert compression is not None
        load = load.compressed(compression)
    return Inputs(load, case.settings, case.brokers(brokers), stalls)


def predicted(case: Case, inputs: Inputs, costs: Costs, seed: int, model: Wrong = RIGHT) -> Figures:
    """The figures of a prediction with a model."""
    made = model.change(inputs)
    with model.around():
        found = predict(
            made.load,
            made.settings,
            brokers=made.brokers,
            costs=costs,
            stalls=made.stalls,
            seed=seed,
            seconds=case.seconds,
        )
    return figures_of(found, case)


def figures_of(found: Prediction, case: Case) -> Figures:
    """By the names of the rows."""
    figures = {
        "p50, ms": found.latency.p50,
        "p99, ms": found.latency.p99,
        "requests/s": found.requests_s,
        "fill": found.fill,
        "longest hold, ms": found.longest_hold_ms,
        "lost": float(found.lost),
        "a batch": found.records_a_batch,
    }
    if case.outage is not None:
        recovery = found.outages[0].recovery_s
        figures["recovery, s"] = case.seconds if recovery is None else recovery
    return figures


def figures_measured(found: Mapping[str, Any], case: Case) -> Figures:
    """The same of a run."""
    figures = {
        "p50, ms": found["p50"],
        "p99, ms": found["p99"],
        "requests/s": found["requests_s"],
        "fill": found["fill"],
        "longest hold, ms": found["longest_hold_ms"],
        "lost": float(found["lost"]),
    }
    if case.outage is not None:
        figures["recovery, s"] = case.seconds if found["recovery"] is None else found["recovery"]
    return figures


def rows_of(case: Case, predictions: Sequence[Figures], runs: Sequence[Figures]) -> Iterator[Row]:
    """The rows of a case, each of medians."""
    batch = median(each["a batch"] for each in predictions)
    for name in runs[0]:
        ours, theirs = (median(each[name] for each in found) for found in (predictions, runs))
        yield Row(case.letter, name, ours, theirs, allowed(name, theirs, batch, case.seconds))


def allowed(name: str, measured: float, batch: float, seconds: float) -> float:
    """By how much a prediction may differ, in the figure's own unit."""
    if name == "lost":
        return batch if measured else 0.0
    if name == "longest hold, ms":
        return max(HOLD_TOLERANCE * measured, LEAST_HOLD_MS)
    if name == "recovery, s":
        # It is known to a part of the time.
        return max(RECOVERY_TOLERANCE * measured, seconds / POINTS)
    return TOLERANCES[name] * measured


def stalled(found: Mapping[str, Any]) -> bool:
    """Whether the machine was not fit for the run."""
    return bool(stalls_of(found).p99 > STALLED * found["p50"])


def stalls_of(found: Mapping[str, Any]) -> Stalls:
    """By how much a sleeping thread overslept in the run."""
    return Stalls.of_table(found["stalls"])
