"""A race: paired differences, who leaves and when, and that nothing runs twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from forebay._closed_forms.node import Settings
from forebay.tune.figures import Figures, Objective, Variation
from forebay.tune.racing import OTHER_LOSS, Effort, Paired, Race, Run, RunKey, burden, in_order, paired
from tests.unit.tune.fakes import Known

BASE = Settings()
FIELD = [replace(BASE, linger_ms=float(linger)) for linger in range(12)]


def race(known: Known, effort: Effort | None = None) -> Race:
    return Race(known, Objective("requests"), 7, effort or Effort(), 100.0)


def test_paired_differences_take_out_what_both_share() -> None:
    found = paired([10.1, 20.1, 30.1], [10.0, 20.0, 30.0])
    assert found.mean == pytest.approx(0.1)
    assert found.error == pytest.approx(0, abs=1e-9)
    assert found.clear
    assert not paired([10.0, 20.0], [10.0, 20.0]).clear
    assert not paired([10.0, 25.0, 28.0], [11.0, 20.0, 30.0]).clear


def test_one_difference_says_nothing() -> None:
    found = paired([2.0], [1.0])
    assert (found.mean, found.error, found.clear) == (1.0, math.inf, False)
    assert Paired(1.0, 0.3, 40).clear and not Paired(1.0, 0.6, 40).clear


def test_as_good_is_nearer_than_a_gain_that_counts() -> None:
    assert paired([10.001, 10.002, 10.0], [10.0, 10.0, 10.001]).below(0.1)
    assert not paired([10.2, 10.2, 10.2], [10.0, 10.0, 10.0]).below(0.1)
    assert not paired([10.0], [10.0]).below(0.1)


def test_what_chance_would_decide_is_decided_by_the_burden() -> None:
    few, many, slow, worse = Figures(7, 22, 410), Figures(5, 22, 760), Figures(16, 22.3, 400), Figures(1, 23, 10)
    given = [worse, many, slow, few]
    assert in_order(given, lambda each: each.p99, lambda each: (burden(each),), "bytes") == [few, many, slow, worse]
    assert 22.3 < 22 * (1 + OTHER_LOSS) < 23
    # A p99 is known less well than a rate.
    assert in_order(given, lambda each: each.p99, lambda each: (burden(each),), "latency")[0] == worse


def test_what_is_equal_in_all_comes_as_it_was_given() -> None:
    one, other, nearly = Figures(7, 22, 410), Figures(7, 22, 410), Figures(7, 22, 409)
    for given in ([one, other, nearly], [nearly, one, other]):
        found = in_order(given, lambda each: each.requests, lambda each: (burden(each),), "requests")
        assert [id(each) for each in found] == [id(each) for each in given]
    assert burden(Figures(0, math.inf, 1)) == burden(Figures(math.inf, 0, 1))


def test_whoever_is_as_good_as_the_best_leaves_at_once() -> None:
    known = Known(noise=0.3)
    close = [replace(BASE, delivery_timeout_ms=float(120_000 + at)) for at in range(20)]
    assert race(known).narrowed(close) == close[:4]
    assert len(known.calls) == 3 * len(close)


def test_all_candidates_have_the_early_runs() -> None:
    known = Known()
    found = race(known)
    found.narrowed(FIELD)
    before = len(known.calls)
    assert len(found.ranked(FIELD, found.early_keys())) == len(FIELD)
    assert len(known.calls) == before


def test_the_best_are_left_best_first() -> None:
    known = Known()
    left = race(known).narrowed(FIELD)
    assert left == FIELD[:-5:-1]
    runs = {settings: sum(count for key, count in known.calls.items() if key[0] == settings) for settings in FIELD}
    assert all(runs[each] == 3 for each in FIELD)


def test_whoever_cannot_be_told_apart_runs_more_and_no_run_is_made_twice() -> None:
    known = Known(noise=0, own=1.5)
    found = race(known)
    close = [replace(BASE, linger_ms=10 + at / 100) for at in range(8)]
    left = found.narrowed(close)
    assert len(left) == 4
    assert max(known.calls.values()) == 1
    assert len({key[1] for key in known.calls}) > Effort().first_seeds
    assert len({key[1] for key in known.calls}) <= Effort().most_seeds


def test_equal_ones_end_in_the_order_in_which_they_came() -> None:
    known = Known()
    close = [replace(BASE, delivery_timeout_ms=float(120_000 + at)) for at in range(6)]
    left = race(known).narrowed(close)
    assert left == close[:4]


def test_twice_the_same_runs_once() -> None:
    known = Known()
    assert race(known).narrowed([BASE, BASE]) == [BASE]
    assert len(known.calls) == 3


def test_longer_runs_have_new_seeds() -> None:
    known = Known()
    found = race(known)
    left = found.narrowed(FIELD)
    keys = found.last_keys()
    assert found.ranked(left, keys)[0] == FIELD[-1]
    assert {key.seed for key in keys}.isdisjoint(key[1] for key in known.calls if key[2] == 5.0)
    assert {key.seconds for key in keys} == {20.0}
    assert found.mean(FIELD[0], keys).requests > found.mean(FIELD[-1], keys).requests


def test_the_same_seed_is_the_same_race() -> None:
    assert race(Known(own=0.5)).narrowed(FIELD) == race(Known(own=0.5)).narrowed(FIELD)


def test_a_variation_is_a_run_of_its_own() -> None:
    known = Known()
    found = race(known)
    plain = found.run(BASE, RunKey(1, 5.0))
    faster = found.run(BASE, RunKey(1, 5.0, Variation(rate=1.3)))
    assert faster.requests == pytest.approx(1.3 * plain.requests)


def test_runs_are_made_beside_each_other_once_and_taken_in_their_order() -> None:
    apart, known = race(Known()), Known()
    asked: list[int] = []

    def several(runs: Sequence[Run]) -> list[Figures]:
        asked.append(len(runs))
        return [known(*run) for run in runs]

    beside = replace(race(Known()), several=several)
    assert beside.narrowed(FIELD) == apart.narrowed(FIELD)
    assert asked[0] == len(FIELD) * Effort().first_seeds
    assert sum(asked) == len(known.calls) and set(known.calls.values()) == {1}
    assert beside.runs == apart.runs


def test_the_least_and_the_most_of_some_runs() -> None:
    found = race(Known())
    keys = found.new_keys(4, 1.0)
    spread = found.spread(BASE, keys)
    values = [found.run(BASE, key).p99 for key in keys]
    assert spread["p99"] == (min(values), max(values)) and spread["p99"][0] < spread["p99"][1]
