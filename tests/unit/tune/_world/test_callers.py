"""The records that come: when, how large, with which keys; the same for each seed."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice, pairwise
from typing import Any

import pytest

from forebay.tune import Brokers, Outage, Workload, predict
from forebay.tune._world.callers import due_times, keys, numbers, partitions, records, values
from forebay.tune.workload import Cycle, Keys, Lognormal, Mix, Stream


def stream(**given: Any) -> Stream:
    return Stream(**given)


def times(wanted: Stream, seconds: float, begin: float = 0.0) -> list[float]:
    return list(due_times(wanted, random.Random(1), begin, begin + 1000 * seconds))


def test_regular_arrivals() -> None:
    assert times(stream(rate=4, arrivals="regular"), 1) == [250, 500, 750]


def test_poisson_arrivals_have_the_rate_and_the_scatter() -> None:
    found = times(stream(rate=1000), 20)
    assert len(found) == pytest.approx(20_000, rel=0.03)
    gaps = [after - before for before, after in pairwise(found)]
    mean = sum(gaps) / len(gaps)
    assert sum((gap - mean) ** 2 for gap in gaps) / len(gaps) == pytest.approx(mean**2, rel=0.05)


def test_steps() -> None:
    found = times(stream(rate=[[0, 100], [10, 1000], [20, 0]], arrivals="regular"), 30)
    counts = Counter(int(when // 10_000) for when in found)
    assert counts == {0: 999, 1: 9999}


def test_bursts_from_the_beginning_of_the_load() -> None:
    found = times(stream(rate=1000, arrivals="regular", burst={"on_ms": 20, "off_ms": 80}), 1, begin=12_345.0)
    assert {int((when - 12_345.0) % 100 // 20) for when in found} == {0}
    assert len(found) == 10 * 19


def test_bursts_go_on_over_a_step_of_the_rate() -> None:
    burst = {"on_ms": 600, "off_ms": 600}
    found = times(stream(rate=[[0, 100], [1, 1000]], arrivals="regular", burst=burst), 3)
    assert all(when % 1200 < 600 for when in found)


def test_sizes() -> None:
    chance = random.Random(1)
    assert list(islice(numbers(Cycle((5, 12)), chance), 4)) == [5, 12, 5, 12]
    mix = Counter(islice(numbers(Mix(((1, 0.25), (3, 0.75))), chance), 8000))
    assert mix[3] / 8000 == pytest.approx(0.75, abs=0.02)
    drawn = list(islice(numbers(Lognormal(100, 1.0, 300), chance), 4000))
    assert max(drawn) <= 300
    assert sorted(drawn)[2000] < 100
    assert [len(value) for value in islice(values(Cycle((0, 9)), chance), 3)] == [0, 9, 0]


def test_keys_by_their_shares() -> None:
    chance = random.Random(1)
    even = Counter(islice(keys(Keys(10), Cycle((4,)), chance), 10_000))
    assert (len(even), max(even.values()) < 1200) == (10, True)
    assert set(even) == {f"{number:04}".encode() for number in range(10)}
    steep = Counter(islice(keys(Keys(10, 1.0), Cycle((4,)), chance), 10_000))
    assert steep[b"0000"] / steep[b"0001"] == pytest.approx(2, rel=0.15)


def test_partitions_by_their_shares() -> None:
    found = Counter(islice(partitions((0.5, 0.0, 1.5), random.Random(1)), 8000))
    assert set(found) == {0, 2}
    assert found[2] / 8000 == pytest.approx(0.75, abs=0.02)


def test_what_comes_is_the_seeds() -> None:
    wanted = stream(rate=1000, sizes={10: 1, 20: 1}, keys={"count": 50})
    first, again, other = (
        list(islice(records(wanted, ("a", "b"), seed, 0.0, 1000.0), 100)) for seed in ("1", "1", "2")
    )
    assert first == again
    assert first != other
    assert [topic for _due, topic, _value, _key, _partition in first[:3]] == ["a", "b", "a"]
    assert {len(value) for _due, _topic, value, _key, _partition in first} == {10, 20}
    assert all(key is not None and partition is None for _due, _topic, _value, key, partition in first)


def test_records_of_closed_callers_are_there_from_the_beginning() -> None:
    wanted = stream(callers="closed", think_ms=5, partitions=[1.0])
    found = list(islice(records(wanted, ("a",), "1", 7.0, 1000.0), 3))
    assert [(due, key, partition) for due, _topic, _value, key, partition in found] == [(7.0, None, 0)] * 3


def test_callbacks_of_their_own_take_memory() -> None:
    def peak(*, callbacks: bool) -> int:
        load = Workload([Stream(rate=2000, sizes=Cycle((100,)), callbacks=callbacks)])
        away = Brokers.alike(1, [Outage(node=1, seconds=(0.0, 1.0))])
        return predict(load, {}, brokers=away, seconds=1).pool.peak

    assert peak(callbacks=True) > 1.5 * peak(callbacks=False)


def test_the_rows_of_a_table_are_due_together() -> None:
    wanted = stream(rate=100, batch_rows=20, arrivals="regular")
    found = [record[0] for record in records(wanted, ("a",), "1", 0.0, 1000.0)]
    assert found == [200.0] * 20 + [400.0] * 20 + [600.0] * 20 + [800.0] * 20
