"""Is what is proposed better?  Real runs of each case with the defaults and with what ``advise`` proposes.

A proposal is judged by the goal that it was asked for: what is to be least, and what a broken limit costs.  The grid
draws settings at random and runs each of them, so that the proposal can be compared with the best of them.
``searched`` does so in the simulation, where more of them can run: that judges the search, and says nothing of the
model.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Self

from forebay.tune import Advice, Costs, Goal, advise, predict
from forebay.tune.figures import Figures, Objective
from forebay.tune.workload import Compression
from tests.truth.cases import Case
from tests.truth.cluster import Cluster
from tests.truth.run import measured
from tests.truth.table import inputs_of, stalls_of
from tests.truth.wrong import Inputs

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
FINALISTS = 10
"""Of the settings that are drawn for the simulation."""
OWN_SEEDS = 7_000_000
JUDGES = (1, 2, 3)
"""Seeds that judge, none of which anything was chosen by."""


@dataclass(frozen=True, slots=True)
class Used:
    """What became of an advice: the loss by the goal, of the defaults as 1."""

    letter: str
    verdict: str
    settings: Mapping[str, Any]
    loss: float
    best: float | None = None
    """Of the grid."""
    winner: Mapping[str, Any] = field(default_factory=dict)
    """The settings of that."""
    same: bool = False
    """Whether the defaults were left, so that what they lose against themselves is chance."""

    @property
    def good(self) -> bool:
        """Whether it is not worse than the defaults, and near the best of the grid."""
        loss = 1.0 if self.same else self.loss
        return loss <= 1 + NOISE and (self.best is None or loss <= self.best * (1 + NEAR))

    def text(self) -> str:
        """A line."""
        said = _listed(self.settings) or "left as they are"
        best = "" if self.best is None else f", best of the grid {self.best:.3f} ({_listed(self.winner)})"
        end = (", which are the defaults" if self.same else "") + ("" if self.good else "  WORSE")
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

    The brokers' first run of a case is slower than what follows, and counts for nobody.  The advice is told how the
    machine stalled in it, as a trace of a running producer tells.

    Args:
        drawn: settings of the grid that run, too.
    """
    with kafka.under(case):
        topic = kafka.topic(case.place, case.partitions)
        first = measured(kafka, case, topic, seed, case.settings)
        inputs = inputs_of(case, kafka.brokers(case.place), compression, stalls_of(first))
        asked = Asked.of(case, inputs, costs, seed)
        objective, fixed, proposed = asked.objective, asked.fixed, asked.proposed

        def run(number: int, settings: Mapping[str, Any]) -> Figures:
            return figures_of(measured(kafka, case, topic, seed + number, settings))

        pairs = [[run(number, settings) for settings in (fixed, proposed)] for number in range(runs)]
        scale = median(objective.value(before) for before, _after in pairs)
        before, after = (median(objective.loss(pair[at], scale) for pair in pairs) for at in (0, 1))
        best: float | None = None
        winner: Mapping[str, Any] = {}
        if drawn:
            every = [{**fixed, **settings} for settings in drawn_settings(drawn, seed)]
            winner = min(every, key=lambda settings: objective.loss(run(0, settings), scale))
            # Once more: the best of many runs owes some of it to chance.
            again = [objective.loss(run(number, winner), scale) for number in range(runs)]
            best = median(again) / before
    same = asked.proposed == asked.fixed
    said = asked.said
    return Used(case.letter, said.verdict, said.settings, after / before, best, winner, same=same)


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def searched(case: Case, inputs: Inputs, costs: Costs, *, seed: int, drawn: int) -> Used:
    """Asks for advice, and simulates the defaults, the proposal and settings of the grid: each with the same seeds.

    None of the seeds is one of the search.  The best of the grid is known by one seed, and then judged by the others.
    """
    asked = Asked.of(case, inputs, costs, seed)

    def loss(settings: Mapping[str, Any], seeds: Iterable[int]) -> float:
        found = [asked.simulated(settings, OWN_SEEDS * seed + each) for each in seeds]
        return median(asked.objective.loss(each, scale) for each in found)

    scale = asked.objective.value(asked.simulated(asked.fixed, OWN_SEEDS * seed))
    first = [({**asked.fixed, **settings}) for settings in drawn_settings(drawn, seed)]
    first.sort(key=lambda settings: loss(settings, [0]))
    before, after = (loss(settings, JUDGES) for settings in (asked.fixed, asked.proposed))
    best, winner = min(((loss(settings, JUDGES), settings) for settings in first[:FINALISTS]), key=lambda each: each[0])
    same = asked.proposed == asked.fixed
    said = asked.said
    return Used(case.letter, said.verdict, said.settings, after / before, best / before, winner, same=same)


@dataclass(frozen=True, slots=True)
class Asked:
    """A case, its goal, and what was advised."""

    case: Case
    inputs: Inputs
    costs: Costs
    objective: Objective
    said: Advice

    @classmethod
    def of(cls, case: Case, inputs: Inputs, costs: Costs, seed: int) -> Self:
        """Asks."""
        goal = GOALS[case.letter]
        said = advise(
            inputs.load,
            goal,
            settings=case.settings,
            brokers=inputs.brokers,
            costs=costs,
            stalls=inputs.stalls,
            seed=seed,
        )
        return cls(case, inputs, costs, Objective(least=goal.least, **goal.limits()), said)

    @property
    def fixed(self) -> dict[str, Any]:
        """The defaults: what the case sets beside what is tuned."""
        given = self.case.settings
        return {name: value for name, value in given.items() if name not in (*GRID, *self.said.settings)}

    @property
    def proposed(self) -> dict[str, Any]:
        """The case's settings with the proposed ones."""
        return {**self.case.settings, **self.said.settings}

    def simulated(self, settings: Mapping[str, Any], seed: int) -> Figures:
        """What settings give by the model."""
        load, brokers, seconds = self.inputs.load, self.inputs.brokers, self.case.seconds
        run = predict(load, settings, brokers=brokers, costs=self.costs, seed=seed, seconds=seconds)
        found = run.figures()
        return Figures(found["p50_ms"], found["p99_ms"], found["requests"], lost=found["lost"], hold=found["hold_ms"])


def drawn_settings(count: int, seed: int) -> list[dict[str, int]]:
    """So many settings of the grid, each once."""
    every = [
        {"linger.ms": linger, "batch.size": batch, "max.in.flight.requests.per.connection": flight}
        for linger in GRID["linger.ms"]
        for batch in GRID["batch.size"]
        for flight in GRID["max.in.flight.requests.per.connection"]
    ]
    return random.Random(seed).sample(every, count)
