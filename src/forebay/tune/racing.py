"""Runs of several settings side by side, on the same arrivals, until it is clear which are better.

Two settings are compared by the differences of their runs with the same seed.  What chance does to both alike leaves
no trace in them, so few short runs suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeVar

from forebay._closed_forms.node import Settings
from forebay.tune.figures import AS_IT_IS, Figures, Objective, Simulate, Variation, mean_of, spread_of

T_95 = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Student's t for 95 % on both sides, by degrees of freedom from 1."""
T_95_OF_MANY = 2.0
SAME_LOSS = {"latency": 0.1}
OTHER_LOSS = 0.02
"""Losses that differ by a smaller share are the same, by what is to be least: a p99 is known less well than a rate."""
SAME_BURDEN = 0.05

Item = TypeVar("Item")
Burden = tuple[int, ...]


def burden(figures: Figures) -> int:
    """What settings cost beside the goal, in steps: p50, p99 and requests, each as much as its share changes."""
    return magnitude((figures.p50, figures.p99, figures.requests), SAME_BURDEN)


def magnitude(values: Iterable[float], step: float) -> int:
    """How large the product of some values is, in steps of such a share."""
    return round(math.fsum(math.log(min(1e300, max(1e-9, each))) for each in values) / step)


def in_order(
    items: Iterable[Item], loss: Callable[[Item], float], weigh: Callable[[Item], Burden], least: str
) -> list[Item]:
    """Least loss first; of those whose losses are the same, the least burden; of equal ones the first that was given.

    ``weigh`` says the burden, and ``least`` what is to be least.  Without a burden chance would decide where the goal
    does not: the p99 before a slow broker is the same with a linger of 1 and of 5 ms, and the requests are twice as
    many.
    """
    left = sorted(((loss(each), at, each) for at, each in enumerate(items)), key=lambda found: found[:2])
    ordered: list[Item] = []
    while left:
        bound = left[0][0] * (1 + SAME_LOSS.get(least, OTHER_LOSS))
        same = max(1, sum(found[0] <= bound for found in left))
        group = sorted(left[:same], key=lambda found: (weigh(found[2]), found[1]))
        ordered += [each for _, _, each in group]
        left = left[same:]
    return ordered


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is run.

    first_seeds, first_seconds: of all candidates.
    most_seeds: until fewer are left.
    last: so many run longer, with ``last_seeds`` new seeds of ``last_seconds``.
    trial_seconds: of a trial.
    least_gain: a smaller gain, of the loss of the present settings, is none.
    """

    first_seeds: int = 3
    first_seconds: float = 5.0
    most_seeds: int = 8
    last: int = 4
    last_seeds: int = 3
    last_seconds: float = 20.0
    trial_seconds: float = 10.0
    least_gain: float = 0.02


@dataclass(frozen=True, slots=True)
class Paired:
    """The mean of paired differences, its standard error, and their number."""

    mean: float
    error: float
    count: int

    @property
    def margin(self) -> float:
        """On both sides of the mean, with 95 %; infinite for a single difference."""
        if self.count < 2:
            return math.inf
        return self.error * (T_95[self.count - 2] if self.count - 2 < len(T_95) else T_95_OF_MANY)

    @property
    def clear(self) -> bool:
        """Whether it is above 0 with 95 %."""
        return self.mean > self.margin and self.mean > 0

    def below(self, least: float) -> bool:
        """Whether it is nearer to 0 than ``least`` with 95 %."""
        return abs(self.mean) + self.margin < least


def paired(worse: Sequence[float], better: Sequence[float]) -> Paired:
    """How much larger the values of ``worse`` are, one by one."""
    differences = [one - other for one, other in zip(worse, better, strict=True)]
    count = len(differences)
    mean = math.fsum(differences) / count
    squares = math.fsum((each - mean) ** 2 for each in differences)
    return Paired(mean, math.sqrt(squares / (count - 1) / count) if count > 1 else math.inf, count)


@dataclass(frozen=True, slots=True)
class RunKey:
    """What a run is of, beside the settings."""

    seed: int
    seconds: float
    variation: Variation = AS_IT_IS


Run = tuple[Settings, int, float, Variation]
"""What ``Simulate`` is called with."""


@dataclass(slots=True)
class Race:
    """All runs so far; none is made twice.

    scale: the value of what is to be least that counts as 1.
    seed: of the whole search; each run's seed is made of it.
    several: makes runs beside each other, from the arguments of ``simulate`` for each; None: one after the other.
    stress: what settings lose when things are not as they are said to be, in steps; it goes before ``burden``.
    """

    simulate: Simulate
    objective: Objective
    seed: int
    effort: Effort = field(default_factory=Effort)
    scale: float = 1.0
    runs: dict[Settings, dict[RunKey, Figures]] = field(default_factory=dict)
    used_seeds: int = 0
    several: Callable[[Sequence[Run]], Sequence[Figures]] | None = None
    stress: Callable[[Settings], int] | None = None

    def new_keys(self, count: int, seconds: float) -> list[RunKey]:
        """Runs with seeds that nothing has been run with."""
        first, self.used_seeds = self.used_seeds, self.used_seeds + count
        return [RunKey(self.seed * 1000 + first + number, seconds) for number in range(count)]

    def run(self, settings: Settings, key: RunKey) -> Figures:
        """One run, or what it gave before."""
        done = self.runs.setdefault(settings, {})
        if key not in done:
            done[key] = self.simulate(settings, key.seed, key.seconds, key.variation)
        return done[key]

    def prepare(self, wanted: Iterable[tuple[Settings, RunKey]]) -> None:
        """Makes runs that are about to be asked for beside each other, if that is possible."""
        if self.several is None:
            return
        missing = [pair for pair in dict.fromkeys(wanted) if pair[1] not in self.runs.get(pair[0], ())]
        tasks = [(settings, key.seed, key.seconds, key.variation) for settings, key in missing]
        for (settings, key), figures in zip(missing, self.several(tasks), strict=True):
            self.runs.setdefault(settings, {})[key] = figures

    def losses(self, settings: Settings, keys: Collection[RunKey]) -> list[float]:
        """Of these runs, in their order."""
        return [self.objective.loss(self.run(settings, key), self.scale) for key in keys]

    def compared(self, worse: Settings, better: Settings, keys: Collection[RunKey]) -> Paired:
        """How much larger the loss of ``worse`` is."""
        return paired(self.losses(worse, keys), self.losses(better, keys))

    def mean(self, settings: Settings, keys: Collection[RunKey]) -> Figures:
        """Over these runs."""
        return mean_of([self.run(settings, key) for key in keys])

    def spread(self, settings: Settings, keys: Collection[RunKey]) -> dict[str, tuple[float, float]]:
        """The least and the most of each figure over these runs."""
        return spread_of([self.run(settings, key) for key in keys])

    def kept(self, settings: Settings, keys: Collection[RunKey]) -> int:
        """How these runs keep the limits, in the mean."""
        return self.objective.kept(self.mean(settings, keys))

    def ranked(self, settings: Collection[Settings], keys: Collection[RunKey]) -> list[Settings]:
        """Best first; those that keep the limits before those that do not, whatever else they give."""
        means = {each: self.mean(each, keys) for each in settings}
        kept: dict[int, list[Settings]] = {}
        for each, figures in means.items():
            kept.setdefault(self.objective.kept(figures), []).append(each)

        least = self.objective.least

        def loss(each: Settings) -> float:
            return math.fsum(self.losses(each, keys))

        def others(each: Settings) -> Burden:
            return (self.stress(each) if self.stress else 0, burden(means[each]))

        return [each for _, alike in sorted(kept.items()) for each in in_order(alike, loss, others, least)]

    def narrowed(self, candidates: Sequence[Settings]) -> list[Settings]:
        """At most ``effort.last`` of the candidates, best first.

        All run with the same seeds.  Of the worse half those leave that are clearly worse than the best, or as good but
        for less than a gain that counts; if none is, all run once more.
        """
        left = list(dict.fromkeys(candidates))
        keys = self.new_keys(self.effort.first_seeds, self.effort.first_seconds)
        self.prepare(product(left, keys))
        left = self.ranked(left, keys)
        while len(left) > self.effort.last:
            half = max(self.effort.last, (len(left) + 1) // 2)
            decided = [each for each in left[half:] if self.decided(each, left[0], keys)]
            if decided:
                left = [each for each in left if each not in decided]
            elif len(keys) >= self.effort.most_seeds:
                break
            else:
                keys += self.new_keys(1, self.effort.first_seconds)
                self.prepare(product(left, keys))
                left = self.ranked(left, keys)
        return left[: self.effort.last]

    def decided(self, settings: Settings, best: Settings, keys: Collection[RunKey]) -> bool:
        """Whether more runs would say nothing new of these settings beside the best."""
        if self.kept(best, keys) < self.kept(settings, keys):
            return True
        found = self.compared(settings, best, keys)
        least = self.effort.least_gain * math.fsum(self.losses(best, keys)) / len(keys)
        return found.clear or found.below(least)

    def early_keys(self) -> list[RunKey]:
        """Runs that all candidates have had."""
        return [
            RunKey(self.seed * 1000 + number, self.effort.first_seconds) for number in range(self.effort.first_seeds)
        ]

    def last_keys(self) -> list[RunKey]:
        """The longer runs of those that are left."""
        return self.new_keys(self.effort.last_seeds, self.effort.last_seconds)
