"""Is what is proposed better?  Real runs of each case with the defaults and with what ``advise`` proposes.

A proposal is judged by the goal that it was asked for: what is to be least, and what a broken limit costs.  The grid
draws settings at random and runs each of them, so that the proposal can be compared with the best of them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from forebay.tune import Costs, Goal, advise
from forebay.tune.figures import Figures, Objective
from forebay.tune.workload import Compression
from tests.truth.cases import Case
from tests.truth.cluster import Cluster
from tests.truth.run import measured
from tests.truth.table import inputs_of

GOALS: Mapping[str, Goal] = {
    "A": Goal(p99_ms=30), "B": Goal(p99_ms=50), "C": Goal(p99_ms=50), "D": Goal(p99_ms=60), "E": Goal(p99_ms=60),
    "F": Goal(least="latency"), "G": Goal(p50_ms=20), "H": Goal(least="latency"), "I": Goal(least="latency"),
    "J": Goal(p99_ms=30), "K": Goal(p99_ms=30), "L": Goal(least="latency"), "M": Goal(lost=0, p50_ms=20),
}  # fmt: skip
"""Written down before the first run, as the cases were."""
NOISE = 0.05
"""A proposal that loses by no more is not worse: runs with the same settings differ by as much."""
GRID = {
    "linger.ms": (0, 1, 2, 5, 10, 20, 50, 100, 200),
    "batch.size": (16_384, 17_200, 32_768, 65_536, 131_072, 262_144),
    "max.in.flight.requests.per.connection": (1, 2, 3, 5),
}
NEAR = 0.1
"""A proposal is as good as the best of the grid if it loses by no more."""


@dataclass(frozen=True, slots=True)
class Used:
    """What became of an advice: the loss by the goal, of the defaults as 1."""

    letter: str
    verdict: str
    settings: Mapping[str, Any]
    loss: float
    best: float | None = None
    """Of the grid."""

    @property
    def good(self) -> bool:
        """Whether it is not worse than the defaults, and near the best of the grid."""
        return self.loss <= 1 + NOISE and (self.best is None or self.loss <= self.best * (1 + NEAR))

    def text(self) -> str:
        """A line."""
        said = ", ".join(f"{name}={value}" for name, value in self.settings.items()) or "left as they are"
        best = "" if self.best is None else f", best of the grid {self.best:.3f}"
        end = "" if self.good else "  WORSE"
        return f"{self.letter}  {self.verdict}: {said}: {self.loss:.3f} of the defaults{best}{end}"


def figures_of(run: Mapping[str, Any]) -> Figures:
    """What a goal looks at."""
    return Figures(
        run["p50"], run["p99"], run["requests_s"], lost=float(run["lost"]), hold=float(run["longest_hold_ms"])
    )


def used(
    kafka: Cluster, case: Case, costs: Costs, compression: Compression, *, runs: int, seed: int, drawn: int = 0
) -> Used:
    """Asks for advice, and runs the defaults and the proposal in turn.

    Args:
        drawn: settings of the grid that run, too.
    """
    inputs = inputs_of(case, kafka.brokers(case.place), compression)
    goal = GOALS[case.letter]
    said = advise(inputs.load, goal, settings=case.settings, brokers=inputs.brokers, costs=costs, seed=seed)
    objective = Objective(least=goal.least, **goal.limits())
    fixed = {name: value for name, value in case.settings.items() if name not in (*GRID, *said.settings)}
    proposed = {**case.settings, **said.settings}
    with kafka.under(case):
        topic = kafka.topic(case.place, case.partitions)
        pairs = [
            [figures_of(measured(kafka, case, topic, seed + number, settings)) for settings in (fixed, proposed)]
            for number in range(runs)
        ]
        scale = median(objective.value(before) for before, _after in pairs)
        before, after = (median(objective.loss(pair[at], scale) for pair in pairs) for at in (0, 1))
        losses = [
            objective.loss(figures_of(measured(kafka, case, topic, seed, {**fixed, **settings})), scale)
            for settings in drawn_settings(drawn, seed)
        ]
    best = min(losses) / before if losses else None
    return Used(case.letter, said.verdict, said.settings, after / before, best)


def drawn_settings(count: int, seed: int) -> list[dict[str, int]]:
    """So many settings of the grid, each once."""
    every = [
        {"linger.ms": linger, "batch.size": batch, "max.in.flight.requests.per.connection": flight}
        for linger in GRID["linger.ms"]
        for batch in GRID["batch.size"]
        for flight in GRID["max.in.flight.requests.per.connection"]
    ]
    return random.Random(seed).sample(every, count)
