"""Advice: which settings would be better for a load, why, and at what price; or that they are best left.

Closed forms choose candidates, the simulation judges them, and sentences say what was measured (``search``,
``reasons``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forebay._closed_forms.estimate import Estimate
from forebay._closed_forms.node import MIB, Settings
from forebay._closed_forms.phases import estimate_phases
from forebay._closed_forms.wording import OPTIONS, options_changed, options_of, settings_of
from forebay.config import ProducerConfig
from forebay.errors import ConfigError
from forebay.tune import FEW_CALLS, LONGEST_S, fleets, predict, span, steps
from forebay.tune import outages as away
from forebay.tune._checks import whole
from forebay.tune._json import json_of
from forebay.tune._workers import Workers
from forebay.tune._world.costs import Costs
from forebay.tune.brokers import Brokers
from forebay.tune.figures import AS_IT_IS, Figures, Objective, Simulate, Variation
from forebay.tune.files import SIMULATED, checked_settings
from forebay.tune.reasons import Reason, Reasons
from forebay.tune.sample import phases_of, scaled, slowed
from forebay.tune.search import IN_FLIGHT, MORE_RATE, Estimator, Outcome, Search, Verdict, grid
from forebay.tune.what_if import WhatIf, what_if

if TYPE_CHECKING:
    import os

    from forebay.tune.goal import Goal
    from forebay.tune.prediction import Prediction
    from forebay.tune.racing import Effort, Run
    from forebay.tune.stalls import Stalls
    from forebay.tune.workload import Workload

VERSION = 1
"""Of the JSON.  It goes up when a field goes or means something else; a new field leaves it."""
OF_FIELD = 100
"""Records of others that are counted as one, for how long runs are."""
QUOTA_S = 20.0
"""In which the windows of a quota are full, and some more."""
STEP_S = 1.0
"""How long the shortest step of a rate lasts in a run, if it is as long."""
MOST_OF_RUN = 300_000
"""No more records of a run are simulated for these."""
SLOWER = 2.0
"""What a slow broker of a trial takes, by what it takes else."""
SHARE = "buffer.memory.max.node.share"
CODEC = "zstd"
"""What is proposed where a ratio is given and no codec is in use."""
MOST_WORKERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What is to be said of a load.

    verdict: "change" to ``settings``; "leave" what there is; "unmet": nothing keeps the goal, ``settings`` are nearest.
    settings: options by name that are to be set beside what is set today; empty with "leave".
    reasons: the most important one first; each has its text and every number in it.
    present, proposed: what the simulation says of the settings of today, and of ``settings`` beside them.
    front: p99 (ms), requests a second and bytes of memory of the settings that no others beat, by closed forms;
        infinite where the load is not served, which is null in the JSON.
    what_if: ``settings`` with one option a step up or down, by closed forms; the first are the settings themselves.
    tried: settings that closed forms saw, and that were simulated.
    """

    version: int
    seed: int
    goal: Goal
    verdict: Verdict
    settings: Mapping[str, int | str]
    reasons: tuple[Reason, ...]
    present: Prediction
    proposed: Prediction
    figures: Mapping[str, Figures]
    """Of the longer runs: ``present``, ``defaults``, ``best``."""
    spreads: Mapping[str, Mapping[str, tuple[float, float]]]
    """The least and the most of each figure in these runs, whose seeds differ."""
    gains: Mapping[str, tuple[float, float]]
    """Over ``present`` and ``defaults``: the share of the present loss that is gained, and its standard error."""
    trials: Mapping[str, Figures]
    front: tuple[tuple[Mapping[str, int | str], float, float, float], ...]
    what_if: tuple[WhatIf, ...]
    tried: tuple[int, int]

    @property
    def met(self) -> bool:
        """Whether the proposed settings, or those of today, keep the goal and serve the load."""
        return self.verdict != "unmet" and self.proposed.served

    def as_json(self) -> str:
        """All of it; the same question with the same seed gives the same text."""
        return json_of(dataclasses.asdict(self))

    def write_report(self, path: str | os.PathLike[str]) -> None:
        """Writes a page with plots, in HTML; the same advice gives the same bytes.

        Raises:
            OSError: the file cannot be written.
        """
        from forebay.tune.report import advice_page  # for pages alone

        Path(path).write_bytes(advice_page(dataclasses.asdict(self)).encode())


def advise(
    load: Workload,
    goal: Goal | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    brokers: Brokers | None = None,
    costs: Costs | None = None,
    stalls: Stalls | None = None,
    seed: int = 1,
    effort: Effort | None = None,
    progress: Callable[[str], object] | None = None,
    workers: int | None = None,
) -> Advice:
    """Looks for better settings for a load; no broker is needed.

    Args:
        load: what comes.
        goal: what is to become least, and what must hold; None: fewest requests.
        settings: those of today, by Kafka's names; what is not given has its default.
        brokers: what it writes to; None: one node as fast as ``Broker()``.
        costs: of the client's own work; None: guesses.
        stalls: of the producer's machine; None: those of a trace, else it never stalls.
        seed: the same one gives the same advice.
        effort: how much is simulated; None: what a load of this rate needs.
        progress: gets a text that says what is done so far, many times a second.
        workers: processes that simulate beside each other; None or 1: all in this one.  The advice is the same.

    Raises:
        ConfigError: an option that is unknown or not simulated, or a value that cannot be.
    """
    from forebay.tune.goal import Goal

    if stalls is None and load.trace is not None:
        stalls = load.trace.stalls
    question = Question(load, goal or Goal(), dict(settings or {}), brokers or Brokers(), costs, stalls, seed)
    with Workers(question.work, 1 if workers is None else whole("workers", workers, 1, MOST_WORKERS)) as found:
        return question.answered(
            effort or effort_for(load, question.brokers), Work(progress or (lambda text: None)), found
        )


def effort_for(load: Workload, brokers: Brokers) -> Effort:
    """Shorter runs of a load with many records: what chance does to them is less.

    A record that is only in the field of a fleet costs as much as a part of one that is simulated.  A quota shows when
    its windows are full, and a step of the rate when it lasts for a second.
    """
    from forebay.tune.racing import Effort

    simulated = min(load.producers, fleets.MOST_SIMULATED)
    whole = span(load, brokers.with_outages())
    rate = steps.rate_over(load, whole) * (simulated + (load.producers - simulated) / OF_FIELD)
    least = min(LONGEST_S, FEW_CALLS / steps.calls(load), MOST_OF_RUN / rate)
    if any(broker.quota is not None for broker in brokers.nodes):
        least = max(least, min(QUOTA_S, MOST_OF_RUN / rate))
    if len(steps.changes(load)) > 1:
        least = max(least, min(whole, STEP_S * whole / steps.shortest(load, whole), MOST_OF_RUN / rate))
    return Effort(
        first_seconds=max(least, 0.5, min(5.0, 6_000 / rate)),
        last_seconds=max(least, 2.0, min(20.0, 20_000 / rate)),
        trial_seconds=max(least, 1.0, min(10.0, 12_000 / rate)),
    )


class Work:
    """Counts what a search has done, and tells it.

    Args:
        tell: gets the text anew after each step.
    """

    def __init__(self, tell: Callable[[str], object]) -> None:
        self.looked_at: int = 0
        self.runs: int = 0
        self.trials: int = 0
        self._tell = tell

    def looking(self, estimate: Estimator) -> Estimator:
        """The same, counted."""

        def counted(settings: Settings) -> Estimate:
            self.looked_at += 1
            self.told()
            return estimate(settings)

        return counted

    def running(self, simulate: Simulate) -> Simulate:
        """The same, counted: runs of the load as it is, and trials of it with something else."""

        def counted(settings: Settings, seed: int, seconds: float, variation: Variation) -> Figures:
            self.ran(variation)
            return simulate(settings, seed, seconds, variation)

        return counted

    def ran(self, variation: Variation) -> None:
        """Counts a run."""
        if variation == AS_IT_IS:
            self.runs += 1
        else:
            self.trials += 1
        self.told()

    def told(self) -> None:
        """Tells what is done, with the step that just began."""
        self._tell(
            f"{self.looked_at:,} settings looked at by formulas, {self.runs} runs of the race, {self.trials} trials"
        )


@dataclass(frozen=True, slots=True)
class Question:
    """A load with its goal, the settings of today, the brokers and the costs."""

    load: Workload
    goal: Goal
    given: Mapping[str, Any]
    brokers: Brokers
    costs: Costs | None
    stalls: Stalls | None
    seed: int

    def work(self, what: str, *arguments: Any) -> Any:
        """What is asked of a worker: the method's name, and its arguments."""
        return getattr(self, what)(*arguments)

    def answered(self, effort: Effort, work: Work, workers: Workers) -> Advice:
        """The advice."""
        present, defaults = self.settings_of(self.given), self.settings_of(self.untuned())
        phases, names = phases_of(self.load, self.brokers)
        objective, producers = Objective(least=self.goal.least, **self.goal.limits()), self.load.producers
        declared = declared_outages(self.brokers, names, present)

        def formulas(settings: Settings) -> Estimate:
            return estimate_phases(phases, settings, producers)

        slowest = Search.slowest(formulas(present))
        more = [replace(each, nodes=scaled(each.nodes, MORE_RATE)) for each in phases]
        slower = [replace(each, nodes=slowed(each.nodes, slowest, SLOWER)) for each in phases]
        stressed = (
            lambda settings: estimate_phases(more, settings, producers),
            lambda settings: estimate_phases(slower, settings, producers),
        )

        def several(runs: Sequence[Run]) -> Sequence[Figures]:
            found: Sequence[Figures] = workers.map([("simulate", names, *run) for run in runs])
            for run in runs:
                work.ran(run[-1])
            return found

        search = Search(
            present=present,
            defaults=defaults,
            estimate=work.looking(formulas),
            simulate=work.running(partial(self.simulate, names)),
            objective=objective,
            outages=declared,
            stressed=stressed,
            seed=self.seed,
            effort=effort,
            several=several if len(workers) else None,
            allowed=self.allowed,
        )
        sizes = phases[0].nodes[0][0].sizes
        flights, ratios, most = self.in_flight(present), self.ratios(present), min(MIB, present.max_request_size)
        looked_at = grid(present, sizes, most_bytes=most, in_flight=flights, ratios=ratios)
        found = search.run(looked_at)
        before, after = (formulas(each) for each in (found.present, found.best))
        told = Reasons(found, objective, before, after, declared, [f"broker {name}" for name in names]).all()
        near = what_if(formulas, found.settings, looked_at, declared)
        return self.advice(found, told, near, workers)

    def advice(self, found: Outcome, told: tuple[Reason, ...], near: tuple[WhatIf, ...], workers: Workers) -> Advice:
        """The outcome in a user's words."""
        settings = options_changed(found.present, found.settings)
        predictions = workers.map([("predicted", each) for each in ({}, settings)[: 1 + bool(settings)]])
        shown = {"present": found.present, "defaults": found.defaults, "best": found.best}
        loss = found.loss if found.loss > 0 else 1.0
        return Advice(
            version=VERSION,
            seed=self.seed,
            goal=self.goal,
            verdict=found.verdict,
            settings=settings,
            reasons=told,
            present=predictions[0],
            proposed=predictions[-1],
            figures={name: found.figures[each] for name, each in shown.items()},
            spreads={name: found.spreads[each] for name, each in shown.items()},
            gains={name: (gain.mean / loss, gain.error / loss) for name, gain in found.gains.items()},
            trials={each.name: each.figures for each in found.trials},
            front=tuple(
                (options_of(each.settings), each.figures.p99, each.figures.requests, each.figures.memory)
                for each in found.front
            ),
            what_if=near,
            tried=found.tried,
        )

    def predicted(self, changed: Mapping[str, Any]) -> Prediction:
        """What the simulation says of the settings of today with others beside them, over the whole load."""
        return predict(
            self.load,
            {**self.given, **changed},
            brokers=self.brokers,
            costs=self.costs,
            stalls=self.stalls,
            seed=self.seed + 1_000_000,
        )

    def simulate(
        self, numbers: Sequence[int], settings: Settings, seed: int, seconds: float, variation: Variation
    ) -> Figures:
        """One run of the search; ``numbers`` are those of the nodes, by their places in the estimates."""
        load = self.load if variation.rate == 1 else self.load.scaled(variation.rate)
        brokers = self.brokers.with_outages()
        if variation.slow_node is not None:
            brokers = brokers.slowed(numbers[variation.slow_node], SLOWER)
        if variation.outage is not None:
            brokers = brokers.with_outages(self.brokers.outages[variation.outage])
            seconds = span(load, brokers)
        else:
            # So that also a short run has each step of the rate.
            load = load.sooner(max(1.0, span(load, brokers) / seconds))
        options = checked_settings({**self.given, **options_of(settings)})
        costs = self.costs or Costs()
        found = fleets.predicted(load, brokers, options, costs=costs, stalls=self.stalls, seed=seed, seconds=seconds)
        return Figures(
            p50=found.latency.p50,
            p99=found.latency.p99,
            requests=found.requests_s,
            memory=found.pool.peak,
            bytes=found.bytes_s,
            cpu=1000 * found.cpu,
            lost=(found.lost + found.backlog) * found.fleet.producers / found.fleet.simulated,
            hold=found.longest_hold_ms,
        )

    def settings_of(self, given: Mapping[str, Any]) -> Settings:
        """As the search takes them, with the defaults of what is not given."""
        config = ProducerConfig({**given, **SIMULATED})
        compression = self.load.compression
        left = 1.0 if compression is None or config["compression.type"] == "none" else compression.ratio
        return settings_of(config, left)

    def untuned(self) -> dict[str, Any]:
        """What is given today, without the options that are tuned; a share of the memory belongs to its size."""
        kept = {"buffer.memory"} if SHARE in self.given else set()
        return {name: value for name, value in self.given.items() if name not in {*OPTIONS.values()} - kept}

    def allowed(self, settings: Settings) -> bool:
        """Whether the producer takes these settings, whose memory may be less than a broker's share has to be."""
        if SHARE not in self.given:
            return True
        try:
            ProducerConfig({**self.given, **options_of(settings), **SIMULATED})
        except ConfigError:
            return False
        return True

    def in_flight(self, present: Settings) -> Sequence[int]:
        """The numbers of requests in flight that keep the order which the user has today."""
        config = ProducerConfig({**self.given, **SIMULATED})
        return (1,) if present.in_flight == 1 and not config["enable.idempotence"] else IN_FLIGHT

    def ratios(self, present: Settings) -> dict[str, float]:
        """Codecs of which the load says what they leave."""
        if self.load.compression is None:
            return {}
        codec = CODEC if present.compression == "none" else present.compression
        return {"none": 1.0, codec: self.load.compression.ratio}


def declared_outages(brokers: Brokers, names: Sequence[int], present: Settings) -> list[away.Outage]:
    """The outages as closed forms take them; of nodes that get nothing there are none."""
    found = []
    for outage in brokers.outages:
        places = tuple(at for at, name in enumerate(names) if name == outage.node)
        begin, end = outage.seconds
        moves = outage.kind == "not_leader"
        found.append(
            away.Outage(
                nodes=places,
                away_ms=0.0 if moves else 1000 * (end - begin),
                notice_ms=present.request_timeout_ms if outage.kind == "silent" else 0.0,
                election_ms=outage.election_ms if moves else 0.0,
            )
        )
    return found
