"""The search: what is looked at, what closed forms leave, what is proposed, and when to leave it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from forebay._closed_forms.estimate import Estimate, estimate
from forebay._closed_forms.node import MIB, NodeCost, NodeLoad, Settings
from forebay.tune.figures import Figures, Objective, Simulate, Variation
from forebay.tune.outages import Outage
from forebay.tune.search import (
    BEST,
    LINGERS,
    OF_FRONT,
    Candidate,
    Search,
    changes,
    distinct,
    front_of,
    grid,
    pruned,
    sums_of,
)
from tests.unit.tune.fakes import Known
from tests.unit.tune.simulation import measured

DEFAULTS = Settings()
SIZES = ((108.0, 1.0),)
IN_TURN = ((5010.0, 0.5), (12010.0, 0.5))
NODES = [(NodeLoad(500, SIZES), NodeCost(1.0, 2.0))]


def of_known(settings: Settings) -> Estimate:
    """The closed forms of a load beside the figures of ``Known``, which says nothing of nodes."""
    found = estimate(NODES, settings)
    figures = Known(noise=0)(settings, 1, 1.0, Variation())
    spread = found.latency.later(figures.p99 - found.latency.p99)
    return replace(found, latency=spread, requests=figures.requests, pool=figures.memory)


def searching(known: Simulate, objective: Objective, **others: object) -> Search:
    made = {"present": DEFAULTS, "defaults": DEFAULTS, "estimate": of_known, "simulate": known, "objective": objective}
    return Search(**(made | others))  # type: ignore[arg-type]


def test_the_grid_has_every_combination_and_the_present_settings() -> None:
    present = replace(DEFAULTS, linger_ms=8, batch_size=20_000, in_flight=4)
    found = grid(present, SIZES)
    assert len(found) == len(set(found)) == (len(LINGERS) + 1) * 8 * 5
    assert present in found
    assert {each.compression for each in found} == {"none"}


def test_the_grid_keeps_to_what_is_allowed() -> None:
    found = grid(DEFAULTS, SIZES, most_bytes=65536, in_flight=(1,), ratios={"zstd": 0.3})
    assert max(each.batch_size for each in found) == 65536
    assert {each.in_flight for each in found} == {1, 5}
    assert {(each.compression, each.compression_ratio) for each in found} == {("none", 1.0), ("zstd", 0.3)}


def test_sums_of_the_commonest_sizes() -> None:
    found = sums_of(IN_TURN)
    assert 17_100 in found and 34_200 in found
    assert sums_of(SIZES) == []
    assert all(16_384 < each <= MIB for each in sums_of(((40_000.0, 0.6), (300_000.0, 0.4))))


def test_the_front_has_no_one_that_another_beats() -> None:
    candidates = [Candidate(each, estimate(NODES, each)) for each in grid(DEFAULTS, SIZES)]
    front = front_of(candidates)
    figures = [(each.figures.p99, each.figures.requests, each.figures.memory) for each in front]
    assert figures == sorted(figures)
    assert 1 < len(front) < len(candidates)
    for each in candidates:
        one = (each.figures.p99, each.figures.requests, each.figures.memory)
        assert any(all(here <= there for here, there in zip(ahead, one, strict=True)) for ahead in figures)


def test_of_those_that_are_the_same_to_closed_forms_the_nearest_is_kept() -> None:
    lingering = [replace(DEFAULTS, batch_size=size) for size in (16384, 32768, 65536)]
    found = distinct([Candidate(each, of_known(replace(DEFAULTS, linger_ms=each.linger_ms))) for each in lingering])
    assert [each.settings for each in found] == lingering[:1]
    assert changes(lingering[0], DEFAULTS) == 0 < changes(lingering[1], DEFAULTS) < changes(lingering[2], DEFAULTS)
    assert changes(replace(DEFAULTS, compression="zstd"), DEFAULTS) == 3


def test_pruning_keeps_the_best_and_some_of_the_front() -> None:
    candidates = [Candidate(each, estimate(NODES, each)) for each in grid(DEFAULTS, SIZES)]
    objective = Objective("requests", p99_ms=30)
    kept, front = pruned(candidates, objective, 100.0)
    assert BEST <= len(kept) <= BEST + OF_FRONT + 1
    losses = [objective.loss(each.figures, 100.0, slack=0.2) for each in candidates]
    assert objective.loss(kept[0].figures, 100.0, slack=0.2) == pytest.approx(min(losses))
    assert front[0] in kept


def test_the_best_that_keeps_the_limit_is_proposed() -> None:
    known = Known()
    found = searching(known, Objective("requests", p99_ms=80)).run(grid(DEFAULTS, SIZES))
    assert found.verdict == "change"
    assert (found.settings.linger_ms, found.settings.batch_size) == (50, MIB)
    assert found.settings == found.best
    assert found.figures[found.settings].requests < found.figures[DEFAULTS].requests / 100
    assert found.gains["present"].mean > 2 * found.gains["present"].error
    assert [trial.name for trial in found.trials] == [
        "the load as it is",
        "the load as it is",
        "a rate +30 %",
        "broker 1 twice as slow",
    ]
    assert all(not trial.broken for trial in found.trials)
    assert found.tried[0] == len(grid(DEFAULTS, SIZES))
    assert found.tried[1] == len({key[0] for key in known.calls})


def test_what_fails_its_trial_gives_way_to_the_next() -> None:
    found = searching(Known(), Objective("requests", p99_ms=62)).run(grid(DEFAULTS, SIZES, in_flight=(1, 3)))
    # With 3 in flight 62 ms are kept, but not by a broker that is twice as slow.
    assert found.verdict == "change"
    assert found.settings.in_flight == 1
    assert found.trials[3].figures.p99 < 62


def test_those_that_keep_the_limits_under_stress_are_tried_though_they_left_the_race() -> None:
    def slow(settings: Settings) -> Estimate:
        found = of_known(settings)
        return replace(found, latency=found.latency.later(4.0 * settings.in_flight))

    close = [replace(DEFAULTS, linger_ms=linger / 2) for linger in range(20, 109)]
    objective = Objective("requests", p99_ms=62)
    plain = searching(Known(noise=0), objective).run(close)
    assert plain.settings.linger_ms < 22  # of the front
    found = searching(Known(noise=0), objective, stressed=[slow]).run(close)
    assert (found.verdict, found.settings.linger_ms) == ("change", 22)
    assert not any(trial.broken for trial in found.trials)


def test_the_defaults_are_left_where_nothing_is_better() -> None:
    found = searching(Known(), Objective("latency")).run([DEFAULTS, replace(DEFAULTS, in_flight=10)])
    assert (found.verdict, found.settings, found.best) == ("leave", DEFAULTS, DEFAULTS)
    assert found.gains == {} and found.failed is None


def test_a_gain_that_chance_may_have_made_is_none() -> None:
    near = [replace(DEFAULTS, batch_size=16384 + at) for at in range(1, 5)]
    found = searching(Known(noise=0, own=0.8), Objective("requests")).run(near)
    assert (found.verdict, found.settings) == ("leave", DEFAULTS)


def test_a_gain_too_small_to_matter_is_none() -> None:
    found = searching(Known(noise=0), Objective("requests")).run([replace(DEFAULTS, batch_size=16500)])
    assert (found.verdict, found.best, found.gains) == ("leave", DEFAULTS, {})


def test_the_defaults_may_be_proposed() -> None:
    present = replace(DEFAULTS, linger_ms=0)
    found = searching(Known(), Objective("requests"), present=present).run([present, DEFAULTS])
    assert (found.verdict, found.settings) == ("change", DEFAULTS)
    assert set(found.gains) == {"present"}


def test_a_limit_that_nothing_keeps_ends_with_the_nearest() -> None:
    found = searching(Known(), Objective("requests", p99_ms=2)).run(grid(DEFAULTS, SIZES))
    assert found.verdict == "unmet"
    assert (found.settings.linger_ms, found.settings.in_flight) == (0, 1)
    (broken,) = Objective("requests", p99_ms=2).broken(found.figures[found.settings])
    assert broken.limit == "p99_ms"


def test_present_settings_that_break_a_limit_are_not_left_for_a_trial_that_fails() -> None:
    present = replace(DEFAULTS, linger_ms=100)
    near = [present, replace(DEFAULTS, linger_ms=52, in_flight=2)]
    objective = Objective("requests", p99_ms=62)
    found = searching(Known(noise=0), objective, present=present, defaults=present).run(near)
    assert (found.verdict, found.settings.linger_ms) == ("unmet", 52)
    assert found.failed is not None and found.failed.name == "broker 1 twice as slow"
    # The defaults pass.
    found = searching(Known(noise=0), objective, present=present).run(near)
    assert (found.verdict, found.settings) == ("change", DEFAULTS)


def test_settings_that_keep_the_limits_come_before_all_that_do_not() -> None:
    """Though they cost more requests than a limit that is broken by a hair."""
    over = replace(DEFAULTS, linger_ms=55, in_flight=1)
    within = [replace(over, linger_ms=30), over]
    objective = Objective("requests", p99_ms=56)
    found = searching(Known(noise=0), objective, present=over, defaults=over).run(within)
    assert (found.verdict, found.settings.linger_ms) == ("change", 30)
    assert found.gains["present"].mean < 0
    present = within[0]
    found = searching(Known(noise=0), objective, present=present, defaults=over).run(within)
    assert (found.verdict, found.settings) == ("leave", present)


def test_a_change_leaves_room_for_the_error_of_the_prediction() -> None:
    near, roomy = replace(DEFAULTS, linger_ms=45, in_flight=1), replace(DEFAULTS, linger_ms=30, in_flight=1)
    objective = Objective("requests", p99_ms=55)
    found = searching(Known(noise=0), objective).run([near, roomy])
    assert (found.verdict, found.settings) == ("change", roomy)
    # Settings of today that keep the limit are left, and so they are for those that keep it by as little.
    for present, others in ((near, [roomy]), (replace(near, linger_ms=44.0), [near])):
        found = searching(Known(noise=0), objective, present=present, defaults=present).run(others)
        assert (found.verdict, found.settings) == ("leave", present)
    # Those that break it are not.
    present = replace(near, linger_ms=60)
    found = searching(Known(noise=0), objective, present=present, defaults=present).run([near])
    assert (found.verdict, found.settings) == ("change", near)


def test_memory_and_timeout_follow_from_the_outages() -> None:
    outages = [Outage((0,), 150_000)]
    present = replace(DEFAULTS, buffer_memory=MIB)
    search = searching(Known(), Objective("requests", lost=0), present=present, outages=outages)
    found = search.run([present, replace(present, linger_ms=20)])
    assert found.verdict == "change"
    assert found.settings.buffer_memory > MIB
    assert found.settings.delivery_timeout_ms > 150_000
    assert found.trials[-1].name == "outage 1" and not found.trials[-1].broken


class MedianOfAnOutage(Known):
    """An outage holds up every third record, so that the median is a record that waited longer."""

    def __call__(self, settings: Settings, seed: int, seconds: float, variation: Variation) -> Figures:
        found = super().__call__(settings, seed, seconds, variation)
        return replace(found, p50=1.5 * found.p50) if variation.outage is not None else found


def test_an_outage_is_held_to_the_latency_that_present_settings_keep_in_it() -> None:
    """The tail is waived, because it is long with any settings."""
    objective = Objective("requests", p50_ms=40, p99_ms=200)
    for known, linger in ((Known(noise=0), 50), (MedianOfAnOutage(noise=0), 40)):
        found = searching(known, objective, outages=[Outage((0,), 1000)]).run(grid(DEFAULTS, SIZES))
        assert (found.verdict, found.settings.linger_ms) == ("change", linger)
        assert found.trials[-1].figures.p99 > 200 and not found.trials[-1].broken


def test_a_trial_that_fails_says_why_it_is_left() -> None:
    outages = [Outage((0,), 150_000)]
    objective = Objective("requests", lost=0, memory=2 * MIB)
    present = replace(DEFAULTS, buffer_memory=MIB)
    found = searching(Known(), objective, present=present, outages=outages).run([replace(present, linger_ms=20)])
    assert (found.verdict, found.settings) == ("leave", present)
    assert found.best.buffer_memory == 2 * MIB
    assert found.failed is not None and found.failed.name == "outage 1"
    assert [each.limit for each in found.failed.broken] == ["lost"]


def test_an_overload_of_all_settings_still_has_an_outcome() -> None:
    nodes = [(NodeLoad(1000, ((20_000.0, 1.0),)), NodeCost(1.0, 1.0, per_mib_ms=200.0))]
    search = searching(Known(), Objective("latency"), estimate=lambda settings: estimate(nodes, settings))
    found = search.run(grid(DEFAULTS, SIZES))
    assert all(each.estimate.overload and math.isinf(each.figures.p99) for each in found.front)
    assert found.verdict in ("change", "leave")


def test_the_same_seed_gives_the_same_outcome() -> None:
    objective = Objective("requests", p99_ms=80)
    runs = [searching(Known(own=0.1), objective, seed=3).run(grid(DEFAULTS, SIZES)) for _ in range(2)]
    assert runs[0] == runs[1]


def test_with_closed_forms_and_a_simulation_of_their_own() -> None:
    slow = [(NodeLoad(100, SIZES, (1.0,) * 4), NodeCost(0.5, 8.0))]

    def simulate(settings: Settings, seed: int, seconds: float, variation: Variation) -> Figures:
        factor = 2 if variation.slow_node is not None else 1
        nodes = [
            (replace(load, rate=load.rate * variation.rate), replace(cost, fixed_ms=cost.fixed_ms * factor))
            for load, cost in slow
        ]
        run = measured(nodes, settings, seed=seed, records=int(100 * seconds))
        return Figures(run.latency.p50, run.latency.p99, run.requests)

    present = replace(DEFAULTS, linger_ms=0)
    search = Search(present, DEFAULTS, lambda settings: estimate(slow, settings), simulate, Objective("latency"))
    found = search.run(grid(present, SIZES))
    assert found.verdict == "change"
    assert found.figures[found.settings].p99 < found.figures[present].p99
    assert found.settings.in_flight < 5 or found.settings.linger_ms > 0


def test_settings_that_break_the_goal_are_not_left_for_others_that_keep_it() -> None:
    """The defaults are as good as the best, and nobody uses them."""

    def simulate(settings: Settings, seed: int, seconds: float, variation: Variation) -> Figures:
        return Figures(p50=settings.linger_ms / 2, p99=settings.linger_ms + 2, requests=100.0 + seed % 3, memory=1e5)

    present = replace(DEFAULTS, linger_ms=200)
    near = [replace(DEFAULTS, linger_ms=linger) for linger in (1, 2, 7, 10)]
    objective = Objective("requests", p99_ms=20)
    found = searching(simulate, objective, present=present).run(near)
    assert found.verdict == "change" and found.figures[found.best].p99 < 20
