from __future__ import annotations

import pytest

from bench.latency import JAVA, PART, Samples, distribution, settings_of, shares_of


def test_shares_are_in_ms_whatever_the_order_of_arrival() -> None:
    taken = [number * 1_000_000 for number in range(1000, 0, -1)]
    found = shares_of(taken)
    assert (found["p50"], found["p99"], found["p99.9"]) == (501, 991, 1000)
    assert taken[0] == 1_000_000_000


def test_a_distribution_is_closer_towards_its_end() -> None:
    points = distribution(list(range(10_000)))
    percents = [percent for percent, _ in points]
    assert percents == sorted(percents)
    assert percents[0] == 0 and percents[-1] == 99.99
    assert sum(percent >= 99 for percent in percents) > 10


def test_java_has_no_interpreter_to_be_kept_from() -> None:
    found = settings_of(PART.parse(["--linger-ms", "0", "5"]))
    assert len({one.label() for one in found}) == len(found) == 10
    assert not any(one.computing for one in found if one.client == JAVA)


def test_without_the_library_nothing_is_noted_about_arrivals() -> None:
    samples = Samples()
    samples.callback()(None, None)
    assert samples.note is None
    assert len(samples.taken) == 1 and samples.taken[0] >= 0
    assert samples.arrived == []


@pytest.mark.parametrize("linger", ["0", "5"])
def test_labels_are_those_that_the_goals_read(linger: str) -> None:
    labels = [one.label() for one in settings_of(PART.parse(["--linger-ms", linger]))]
    assert f"forebay, linger {linger}, computing thread" in labels
    assert f"Java, linger {linger}" in labels
