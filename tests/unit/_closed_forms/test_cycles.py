"""Ends of cycles, by time or by room, beside cycles that are played."""

from __future__ import annotations

from random import Random

import pytest

from forebay._closed_forms.cycles import ONE, Cycle, Group, batches_of, cycle, grouped
from forebay._closed_forms.estimate import estimate
from forebay._closed_forms.latency import latency
from forebay._closed_forms.node import NodeCost, NodeLoad, Settings
from forebay._closed_forms.packing import Packing, full_batches

CYCLES = 4000


def holding(records: int) -> Packing:
    return Packing(((records, 1.0),), float(records))


def played(rate: float, linger: float, room: int, shares: tuple[float, ...]) -> tuple[float, list[float], float]:
    """(records of a cycle, waits, share that linger ends) of batches that take ``room`` records each."""
    random = Random(5)
    waits: list[float] = []
    records = lingers = 0
    now, first = 0.0, random.choices(range(len(shares)), shares)[0]
    for _ in range(CYCLES):
        due, held = [now], {first: 1}
        while True:
            at = due[-1] + random.expovariate(rate)
            (partition,) = random.choices(range(len(shares)), shares)
            if at > now + linger or held.get(partition, 0) == room:
                end = min(at, now + linger)
                lingers += at > now + linger
                break
            due.append(at)
            held[partition] = held.get(partition, 0) + 1
        waits += [end - each for each in due]
        records += len(due)
        now, first = at, partition
    return records / CYCLES, waits, lingers / CYCLES


@pytest.mark.parametrize(
    ("rate", "linger", "room", "shares"),
    [
        (1.0, 5.0, 1000, (1.0,)),
        (1.0, 5.0, 5, (1.0,)),
        (1.0, 5.0, 1, (1.0,)),
        (3.0, 20.0, 40, (1.0,)),
        (10.0, 20.0, 40, (1.0,)),
        (3.0, 20.0, 10, (1.0, 1.0, 1.0)),
        (3.0, 20.0, 10, (4.0, 1.0, 1.0)),
    ],
)
def test_beside_cycles_that_are_played(rate: float, linger: float, room: int, shares: tuple[float, ...]) -> None:
    found = cycle(rate, linger, holding(room), grouped(shares))
    records, waits, lingers = played(rate, linger, room, shares)
    seen = latency((wait, 1.0) for wait in waits)
    assert found.records == pytest.approx(records, rel=0.06)
    assert found.mean == pytest.approx(found.records / rate)
    assert found.lingers == pytest.approx(lingers, abs=0.06)
    assert latency(found.waits).p50 == pytest.approx(seen.p50, rel=0.08, abs=linger / 40)
    assert latency(found.waits).p99 == pytest.approx(seen.p99, rel=0.08, abs=linger / 40)


def test_without_linger_each_record_goes_at_once() -> None:
    found = cycle(2.0, 0.0, holding(100))
    assert found == Cycle(1.0, 0.5, 0.25, 0.0, 1.0, 0.0, ((0.0, 1.0),))
    assert found.arrivals.mean == 0.5


def test_cycles_that_linger_ends_are_never_shorter() -> None:
    found = cycle(1.0, 10.0, holding(10_000))
    assert (found.shortest, found.lingers, found.records) == (10.0, 1.0, 11.0)
    assert found.variance == pytest.approx(1.0)


def test_partitions_in_groups() -> None:
    assert grouped((2.0, 1.0, 1.0)) == (Group(0.5, 1), Group(0.25, 2))
    many = grouped([1 / (at + 1) for at in range(1000)])
    assert len(many) <= 8
    assert sum(group.count for group in many) == 1000
    assert sum(group.count * group.share for group in many) == pytest.approx(1)
    assert [group.share for group in many] == sorted((group.share for group in many), reverse=True)


def test_batches_that_are_open() -> None:
    assert batches_of(ONE, 1.0) == 1.0
    assert batches_of(ONE, 50.0) == pytest.approx(1.0)
    assert batches_of((Group(0.01, 100),), 2.0) == pytest.approx(1.99, abs=0.01)
    assert batches_of((Group(0.01, 100),), 10_000.0) == pytest.approx(100)


def test_room_of_mixed_sizes() -> None:
    packing = full_batches(((100.0, 0.5), (900.0, 0.5)), 4000)
    assert cycle(10.0, 100.0, packing).records == pytest.approx(packing.mean, rel=0.02)


def test_a_record_goes_along_where_the_next_sticky_partition_is_on_the_same_node() -> None:
    alone, beside = (cycle(10.0, 1000.0, holding(20), near=near) for near in (0.0, 5 / 6))
    assert alone.along == 0.0
    assert beside.along == pytest.approx(5 / 7)
    assert beside.records == pytest.approx(alone.records + 5 / 7)
    assert cycle(0.1, 10.0, holding(2), near=0.5).along < 0.1


def test_full_batches_of_one_node_have_small_ones_beside_them() -> None:
    load = NodeLoad(20_000, ((509.0, 1.0),), partitions=6)
    found = estimate([(load, NodeCost(1.0, 0.4, 3.0))], Settings(100))
    # As the real producer in the simulated world: 32 records and, five times of seven, one of another partition.
    assert found.nodes[0].batches_request == pytest.approx(1.72, abs=0.03)
    assert found.records_batch == pytest.approx(19, abs=0.4)
    three = estimate([(NodeLoad(6667, ((509.0, 1.0),), partitions=2), NodeCost(1.0, 0.4, 3.0))] * 3, Settings(100))
    assert three.nodes[0].batches_request == pytest.approx(1.09, abs=0.02)
