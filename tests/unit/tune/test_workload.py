"""What a load may be, and the figures that follow from it alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from forebay.errors import ConfigError
from forebay.tune.workload import Cycle, Lognormal, Mix, Stream, Workload


def stream(**given: Any) -> Stream:
    """With values as a file gives them."""
    return Stream(**given)


def test_sizes_in_every_form() -> None:
    assert stream(rate=1, sizes=300).sizes == Cycle((300,))
    assert stream(rate=1, sizes=[5000, 12000]).sizes == Cycle((5000, 12000))
    assert stream(rate=1, sizes={1: 1, 3: 3}).sizes == Mix(((1, 0.25), (3, 0.75)))
    assert stream(rate=1, sizes={"median": 100, "sigma": 1}).sizes == Lognormal(100, 1)


def test_rates_of_steps_bursts_and_closed_callers() -> None:
    assert stream(rate=[[0, 500], [60, 8000]]).mean_rate == 8000
    assert stream(rate=[[0, 500], [60, 8000]]).rate == ((0, 500), (60, 8000))
    assert stream(rate=1000, burst={"on_ms": 200, "off_ms": 800}).mean_rate == 200
    assert stream(callers="closed", think_ms=10, threads=4).mean_rate == 400
    assert stream(callers="closed", think_ms=10, threads=4, batch_rows=50).mean_rate == 20_000
    assert stream(rate=1000, batch_rows=50).mean_rate == 1000
    assert Workload([Stream(rate=3), Stream(rate=4)]).rate == 7


def test_a_workload_is_made_of_one_stream_or_of_several() -> None:
    assert Workload(rate=5, topics={"a": 3}) == Workload([Stream(rate=5)], topics={"a": 3})
    with pytest.raises(ConfigError, match="needs a rate"):
        Workload()
    with pytest.raises(ConfigError, match="needs a rate"):
        Workload([Stream(rate=1)], rate=2)


def test_more_of_the_same() -> None:
    burst = {"on_ms": 1, "off_ms": 1}
    kinds = [stream(rate=10, burst=burst), stream(rate=[[0, 5], [9, 7]]), stream(callers="closed", think_ms=5)]
    load = Workload(kinds, topics={"a": 3}, producers=2, compression={"ratio": 0.5})
    more = load.scaled(2)
    assert [each.rate for each in more.streams[:2]] == [20, ((0, 10), (9, 14))]
    assert more.streams[2].think_ms == 2.5
    assert more.rate == 2 * load.rate
    assert more.scaled(0.5) == load
    assert load.of_producers(9).producers == 9 and load.of_producers(9).of_producers(2) == load
    with pytest.raises(ConfigError, match="factor is 0"):
        load.scaled(0)


def test_it_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Workload(rate=1).producers = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rate": -1}, "rate is -1; it must be a number above 0 to 1e+07"),
        ({"rate": True}, "rate is True"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"rate": [[1, 5]]}, "begins at second 0"),
        ({"rate": [[0, 5], [0, 6]]}, "above that of the step before, 0"),
        ({"rate": [5, 6]}, "a number, or a list of"),
        ({"sizes": {}}, "a table with a size and its share"),
        ({"sizes": {10: 0}}, "a table with a share over 0"),
        ({"sizes": -1}, "sizes is -1; it must be a whole number from 0"),
        ({"sizes": {"median": 5}}, "a table with median and sigma"),
        ({"sizes": {"median": 5, "sigma": 9}}, "sizes sigma is 9; it must be a number from 0 to 5"),
        ({"sizes": {"median": 5, "sigma": 1, "most": 2}}, "at least the median"),
        ({"keys": {"zipf": 1}}, "a table with count and zipf"),
        ({"keys": {"count": 0}}, "keys count is 0"),
        ({"keys": {"count": 5}, "partitions": [1.0]}, "left out where partitions are named"),
        ({"partitions": [0.0]}, "a list with a share over 0"),
        ({"partitions": [1.0] * 13}, "at most 12 shares for topic topic"),
        ({"burst": {"on_ms": 5}}, "a table with on_ms and off_ms"),
        ({"burst": {"on_ms": 1e-9, "off_ms": 0}}, "burst on_ms is 1e-09; it must be a number from 0.1 to"),
        ({"arrivals": "posson"}, "one of poisson, regular (did you mean 'poisson'?)"),
        ({"callbacks": "yes"}, "callbacks is 'yes'; it must be true or false"),
        ({"callers": "closed"}, "think_ms is 0.0; it must be above 0 for closed callers"),
        ({"threads": 0}, "threads is 0"),
        ({"topic": "other"}, "topic is 'other'; it must be one of topic"),
    ],
)
def test_what_is_refused_and_how(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Workload(**{"rate": 1, **given})
    assert said in refusal.value.message


@pytest.mark.parametrize("topics", [{}, {"": 1}, {"a/b": 1}, {"a": 0}, 5, ["a"]])
def test_topics_that_cannot_be(topics: Any) -> None:
    with pytest.raises(ConfigError, match="topics"):
        Workload(rate=1, topics=topics)
