"""The search for settings: a grid, cut down by closed forms, raced in simulation, tried, and only then proposed.

What is proposed keeps every limit in each trial, by the model, and is clearly better than the present settings and than
the defaults.  Else the outcome is to leave the settings, with the reason.  Acknowledgements, idempotence, keys and
partitions are never changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product, takewhile
from typing import Literal

from forebay._closed_forms.estimate import Estimate
from forebay._closed_forms.node import BATCH_OVERHEAD, MIB, Settings
from forebay.tune.figures import (
    BROKEN,
    MOST_EXCESS,
    OF_LATENCY,
    PENALTY,
    WITH_ROOM,
    Broken,
    Figures,
    Objective,
    Simulate,
    Variation,
)
from forebay.tune.outages import Outage, fitted
from forebay.tune.racing import Burden, Effort, Paired, Race, Run, RunKey, burden, in_order, magnitude

LINGERS = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300, 500)
BATCHES = tuple(1 << power for power in range(14, 21))
IN_FLIGHT = (1, 2, 3, 5)
COMMONEST = 3
"""Sizes of records of which sums are tried."""
MULTIPLES = (1, 2, 3, 4)
SPARE = 4
"""Bytes by which a record's overhead may grow with its place in the batch."""
BEST = 10
"""Candidates by the objective that are simulated."""
OF_FRONT = 4
"""Candidates of the front that are simulated, from the fastest to the one with the fewest requests."""
SLACK = 0.2
"""Excess over a limit that closed forms may be wrong by."""
SAME = 0.01
"""Candidates whose figures differ by less, of each, are the same to the closed forms."""
SAME_STRESS = 0.2
"""Losses under stress that differ by a smaller share are the same: closed forms say them."""
MORE_RATE = 1.3
MOST_TRIED = 8
"""Settings that left the race and are tried if none of those that are left passes."""
SHORTER = 5
"""Lingers below the best one that are among these."""
UNSEEN = 2
"""Seeds of a trial."""

Verdict = Literal["change", "leave", "unmet"]
Estimator = Callable[[Settings], Estimate]


def figures_of(found: Estimate) -> Figures:
    """What closed forms say."""
    return Figures(found.latency.p50, found.latency.p99, found.requests, found.pool, found.bytes)


def stress_of(stressed: Sequence[Estimate], objective: Objective, scale: float) -> int:
    """What is lost under stress, in steps."""
    losses = [objective.loss(figures_of(each), scale) for each in stressed]
    return magnitude([math.fsum(losses)], SAME_STRESS) if losses else 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """Settings and what the closed forms say of them, as the load is and under the stress of the trials."""

    settings: Settings
    estimate: Estimate
    stressed: tuple[Estimate, ...] = ()

    @property
    def figures(self) -> Figures:
        return figures_of(self.estimate)

    def robust(self, objective: Objective, scale: float) -> tuple[bool, float]:
        """Whether a limit is not kept with room, and the loss with the excess where it is largest: under stress."""
        over = [MOST_EXCESS if found.overload else objective.excess(figures_of(found)) for found in self.stressed]
        most = max([objective.kept(self.figures), *over])
        return most > WITH_ROOM, objective.loss(self.figures, scale) + PENALTY * max(over, default=0.0)


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial of the winner: its name, its figures, the limits that it broke."""

    name: str
    figures: Figures
    broken: tuple[Broken, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the search has found.

    verdict: "change" to ``settings``; "leave" what there is; "unmet": nothing keeps the limits, in each trial too, not
        even the present settings, and ``settings`` are nearest to it.
    settings: proposed; with "leave" the present ones.
    best: the best that was found, whether it is proposed or not.
    figures: of the longer runs, by settings: the best, the present ones, the defaults, and what else was left.
    gains: paired gains of the best in loss, over "present" and "defaults", unless it is the same.
    loss: of the present settings; what the gains are to be seen beside.
    trials: of the best.
    failed: the trial that kept it from being proposed.
    front: candidates of which none is better in p99, requests and memory at once, fastest first.
    tried: candidates that closed forms saw, and that were simulated.
    spreads: the least and the most of each of ``figures``, in the same runs.
    """

    verdict: Verdict
    settings: Settings
    best: Settings
    present: Settings
    defaults: Settings
    figures: Mapping[Settings, Figures]
    gains: Mapping[str, Paired]
    loss: float
    trials: tuple[Trial, ...]
    failed: Trial | None
    front: tuple[Candidate, ...]
    tried: tuple[int, int]
    spreads: Mapping[Settings, Mapping[str, tuple[float, float]]] = field(default_factory=dict)


def grid(
    present: Settings,
    sizes: Sequence[tuple[float, float]],
    *,
    most_bytes: int = MIB,
    in_flight: Sequence[int] = IN_FLIGHT,
    ratios: Mapping[str, float] | None = None,
) -> list[Settings]:
    """All settings that are looked at.

    Args:
        sizes: (bytes of a record with overhead, share).
        most_bytes: of a batch, such as ``max.request.size``.
        in_flight: the numbers that keep the order of records, where the user relies on it.
        ratios: what each codec leaves of the bytes; codecs whose ratio is not known are not proposed.
    """
    batches = sorted({*BATCHES, *sums_of(sizes), present.batch_size})
    codecs = {present.compression: present.compression_ratio, **(ratios or {})}
    lingers = sorted({*LINGERS, present.linger_ms})
    flights = sorted({*in_flight, present.in_flight})
    return [
        replace(
            present, linger_ms=linger, batch_size=batch, in_flight=flight, compression=codec, compression_ratio=left
        )
        for linger, batch, flight, (codec, left) in product(lingers, batches, flights, codecs.items())
        if batch <= most_bytes or batch == present.batch_size
    ]


def sums_of(sizes: Sequence[tuple[float, float]]) -> list[int]:
    """Batch sizes that take whole numbers of the commonest records, in steps of 100 bytes.

    Only those in which few records fit: with many, what is left over is little at any size.
    """
    commonest = sorted(sizes, key=lambda each: -each[1])[:COMMONEST]
    found = set()
    for count in range(1, len(commonest) + 1):
        one_each = sum(size + SPARE for size, _ in commonest[:count])
        for times in MULTIPLES:
            whole = math.ceil((BATCH_OVERHEAD + times * one_each) / 100) * 100
            if BATCHES[0] < whole <= BATCHES[-1]:
                found.add(whole)
    return sorted(found)


def front_of(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that no other one beats in p99, requests and memory at once, fastest first; of equal ones the first."""
    keyed = [(each.figures.p99, each.figures.requests, each.figures.memory, at) for at, each in enumerate(candidates)]
    front: list[tuple[float, float, float, int]] = []
    for here in sorted(keyed):
        if not any(all(ahead[place] <= here[place] for place in range(3)) for ahead in front):
            front.append(here)
    return [candidates[at] for *_, at in front]


def distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """One of each that closed forms cannot tell apart, the first that comes."""
    found: dict[tuple[int, ...], Candidate] = {}
    for each in candidates:
        figures = each.figures
        numbers = (figures.p50, figures.p99, figures.requests, figures.memory, figures.bytes)
        found.setdefault(tuple(round(math.log(min(1e300, max(1e-9, number))) / SAME) for number in numbers), each)
    return list(found.values())


def changes(settings: Settings, present: Settings) -> float:
    """How far settings are from the present ones: of equal ones the nearest is taken."""
    steps = abs(math.log2((settings.linger_ms + 1) / (present.linger_ms + 1)))
    steps += abs(math.log2(settings.batch_size / present.batch_size))
    steps += abs(math.log2(settings.in_flight / present.in_flight))
    return steps + 3 * (settings.compression != present.compression)


def pruned(
    candidates: Sequence[Candidate], objective: Objective, scale: float
) -> tuple[list[Candidate], list[Candidate]]:
    """(candidates to simulate, the whole front), from what closed forms say."""
    able = [each for each in candidates if not each.estimate.overload] or list(candidates)
    able = distinct(able)
    front = front_of(able)

    def loss(each: Candidate) -> float:
        return objective.loss(each.figures, scale, slack=SLACK)

    def others(each: Candidate) -> Burden:
        return stress_of(each.stressed, objective, scale), burden(each.figures)

    best = in_order(able, loss, others, objective.least)[:BEST]
    if any(each.stressed for each in able):
        # The best by a hair fail their trials, so that there must be some beside them that do not.
        best = best[: BEST // 2] + sorted(able, key=lambda each: each.robust(objective, scale))[: BEST // 2]
    step = max(1, math.ceil(len(front) / OF_FRONT))
    kept = {each.settings: each for each in [*best, *front[::step]]}
    return list(kept.values()), front


@dataclass(slots=True)
class Search:
    """A search for the settings of one load.

    stressed: estimates under what the trials change, such as more rate or a slow broker.
    outages: those that are declared; a trial is made of each.
    several: as of ``Race``.
    allowed: whether a producer takes the settings.
    """

    present: Settings
    defaults: Settings
    estimate: Estimator
    simulate: Simulate
    objective: Objective
    stressed: Sequence[Estimator] = ()
    outages: Sequence[Outage] = ()
    seed: int = 1
    effort: Effort = field(default_factory=Effort)
    several: Callable[[Sequence[Run]], Sequence[Figures]] | None = None
    allowed: Callable[[Settings], bool] = lambda settings: True

    def run(self, settings: Sequence[Settings]) -> Outcome:
        """The outcome for these settings, such as ``grid`` makes."""
        near = sorted(settings, key=lambda each: changes(each, self.present))
        present = Candidate(self.present, self.estimate(self.present))
        candidates = [each for each in map(self.completed, near) if self.allowed(each.settings)] or [present]
        scale = self.objective.value(present.figures)
        scale = scale if 0 < scale < math.inf else 1.0
        kept, front = pruned(candidates, self.objective, scale)
        stress = cache(lambda each: stress_of([estimate(each) for estimate in self.stressed], self.objective, scale))
        race = Race(self.simulate, self.objective, self.seed, self.effort, scale, several=self.several, stress=stress)
        if self.objective.value(present.figures) == 0:
            # Closed forms do not say what the processor does.
            race.scale = self.objective.value(race.run(self.present, race.early_keys()[0])) or 1.0
        kept.sort(key=lambda each: changes(each.settings, self.present))
        entered = [self.present, self.defaults, *(each.settings for each in kept)]
        left = race.narrowed(entered)
        keys = race.last_keys()
        race.prepare(product(left, keys))
        left = race.ranked(left, keys)
        trials = self.trials(race, self.slowest(present.estimate))
        seen = [each.settings for each in candidates]
        others = dict.fromkeys([*entered, *self.shorter(left[0], seen)])
        outcome = self.judge(race, left, [each for each in others if each not in left], keys, trials)
        return replace(outcome, front=tuple(front), tried=(len(candidates), len(race.runs)))

    @property
    def known(self) -> tuple[Settings, Settings]:
        """What a proposal has to be better than."""
        return self.present, self.defaults

    def completed(self, settings: Settings) -> Candidate:
        """With the memory and the timeout that follow, within the limit of memory."""
        found = self.estimate(settings)
        least = MIB if self.objective.least == "memory" else self.present.buffer_memory
        made = fitted(found, settings, self.outages, least_memory=least)
        if self.objective.memory is not None:
            capped = replace(made, buffer_memory=max(1, min(made.buffer_memory, int(self.objective.memory))))
            made = capped if self.allowed(capped) else made
        return Candidate(made, found, tuple(estimate(settings) for estimate in self.stressed))

    @staticmethod
    def slowest(found: Estimate) -> int:
        """The node whose connection has the least to spare."""
        used = [node.used for node in found.nodes]
        return used.index(max(used))

    def trials(self, race: Race, slowest: int) -> list[RunKey]:
        """The runs of a trial, with seeds that nothing was run with."""
        seconds = self.effort.trial_seconds
        keys = race.new_keys(UNSEEN, self.effort.last_seconds)
        varied = [Variation(rate=MORE_RATE), Variation(slow_node=slowest)]
        varied += [Variation(outage=number) for number in range(len(self.outages))]
        for variation in varied:
            (key,) = race.new_keys(1, seconds)
            keys.append(replace(key, variation=variation))
        return keys

    @staticmethod
    def shorter(best: Settings, seen: Sequence[Settings]) -> list[Settings]:
        """The best with shorter lingers, which leave more room below limits of latency; the longest first."""
        same = [
            each
            for each in seen
            if each.linger_ms < best.linger_ms
            and (each.batch_size, each.in_flight, each.compression)
            == (best.batch_size, best.in_flight, best.compression)
        ]
        return sorted(same, key=lambda each: -each.linger_ms)[:SHORTER]

    def judge(
        self, race: Race, left: list[Settings], others: list[Settings], keys: list[RunKey], trials: list[RunKey]
    ) -> Outcome:
        """The first that passes its trial and is clearly better; else what to say instead, which is of the best.

        Args:
            left: of the race, best first.
            others: some of them are tried if none of those that are left passes.
        """
        unseen = [*keys, *trials[:UNSEEN]]
        better = takewhile(lambda each: each != self.present, left)
        first = self.judge_one(race, left[0], unseen, trials)
        for settings in better:
            outcome = self.judge_one(race, settings, unseen, trials)
            if outcome.verdict == "change":
                return outcome
        kept = {each: self.objective.kept(first.figures[each]) for each in (left[0], self.present)}
        if first.failed is None and kept[left[0]] == WITH_ROOM and kept[self.present] != BROKEN:
            return first
        race.prepare(product(others, race.early_keys()))
        ranked = race.ranked(dict.fromkeys([*others, self.present]), race.early_keys())
        for settings in list(takewhile(lambda each: each != self.present, ranked))[:MOST_TRIED]:
            # The trials of those that left the race are short, and most often decide.
            race.prepare((settings, key) for key in trials[UNSEEN:])
            if not any(self.trial(race, settings, key).broken for key in trials[UNSEEN:]):
                outcome = self.judge_one(race, settings, unseen, trials)
                if outcome.verdict == "change":
                    return outcome
        return first

    def judge_one(self, race: Race, settings: Settings, keys: list[RunKey], trials: list[RunKey]) -> Outcome:
        """What is to be said of one of those that are left."""
        compared = dict.fromkeys([settings, *self.known])
        away = [key for key in trials if key.variation.outage is not None]
        race.prepare([*product(compared, keys), *((settings, key) for key in trials), *product(self.known, away)])
        results = tuple(self.trial(race, settings, key) for key in trials)
        others = {"present": self.present, "defaults": self.defaults}
        gains = {name: race.compared(other, settings, keys) for name, other in others.items() if other != settings}
        failed = next((each for each in results if each.broken), None)
        loss = math.fsum(race.losses(self.present, keys)) / len(keys)
        least = self.effort.least_gain * loss
        figures = {each: race.mean(each, keys) for each in compared}
        kept = {each: self.objective.kept(figures[each]) for each in compared}
        broken = kept[self.present] == BROKEN

        def clear(name: str, gain: Paired) -> bool:
            # To keep the limits is better than any gain of those that do not.
            if kept[settings] < kept[others[name]] == BROKEN:
                return True
            margin = max(2 * gain.error, least)
            # Where today's break a limit, others need not be better than the defaults: these are not in use.
            return gain.mean > (-margin if broken and name != "present" else margin)

        better = settings != self.present and all(clear(name, gain) for name, gain in gains.items())
        if broken and (kept[settings] == BROKEN or failed is not None):
            # These are nothing to leave.
            verdict: Verdict = "unmet"
        else:
            # Without room a change is a risk, which only settings that break a limit anyway are worth.
            sure = kept[settings] == WITH_ROOM or kept[settings] < kept[self.present]
            verdict = "change" if better and failed is None and sure else "leave"
        return Outcome(
            verdict=verdict,
            settings=self.present if verdict == "leave" else settings,
            best=settings,
            present=self.present,
            defaults=self.defaults,
            figures=figures,
            gains=gains,
            loss=loss,
            trials=results,
            failed=failed,
            front=(),
            tried=(0, 0),
            spreads={each: race.spread(each, keys) for each in compared},
        )

    def trial(self, race: Race, settings: Settings, key: RunKey) -> Trial:
        figures = race.run(settings, key)
        if key.variation.outage is None:
            return Trial(key.variation.name, figures, self.objective.broken(figures))
        # With room, because what part of the time is an outage is a guess.
        objective = self.objective.with_room
        return Trial(key.variation.name, figures, objective.broken(figures, self.waived(race, key, objective)))

    def waived(self, race: Race, key: RunKey, objective: Objective) -> list[str]:
        """The limits of latency that neither the present settings nor the defaults keep in an outage."""
        missed = [{each.limit for each in objective.broken(race.run(known, key))} for known in self.known]
        return [limit for limit in OF_LATENCY if all(limit in each for each in missed)]
