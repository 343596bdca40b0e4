"""Records of a full batch: one size, several in turn or drawn, and what large records do."""

from __future__ import annotations

import math
from random import Random

import pytest

from forebay._closed_forms.packing import at_most, full_batches, reaches

IN_TURN = ((5010.0, 0.5), (12010.0, 0.5))


def packed(sizes: tuple[tuple[float, float], ...], room: float, *, records: int = 200_000) -> float:
    """Mean records of a batch, by filling some."""
    random, batches, held = Random(7), 1, 0.0
    drawn = random.choices([size for size, _ in sizes], [share for _, share in sizes], k=records)
    for size in drawn:
        if held and held + size > room:
            batches, held = batches + 1, 0.0
        held += size
    return records / batches


def test_one_size() -> None:
    assert full_batches(((100.0, 1.0),), 1000).counts == ((10, 1.0),)
    assert full_batches(((100.0, 1.0),), 1099).mean == 10
    assert full_batches(((100.0, 1.0),), 50).mean == 1


@pytest.mark.parametrize(("batch", "records"), [(16384, 1), (17200, 2), (32768, 3.0), (1 << 20, 123)])
def test_two_sizes_in_turn(batch: int, records: float) -> None:
    assert full_batches(IN_TURN, batch - 61, in_turn=True).mean == pytest.approx(records, rel=0.1)


@pytest.mark.parametrize(
    ("sizes", "room"),
    [
        (IN_TURN, 16323),
        (IN_TURN, 17139),
        (IN_TURN, 65475),
        (((100.0, 0.9), (10_000.0, 0.1)), 16323),
        (((100.0, 0.5), (300.0, 0.3), (900.0, 0.2)), 4000),
        (((100.0, 0.5), (300.0, 0.3), (900.0, 0.2)), 65475),
        (((100.0, 0.5), (20_000.0, 0.5)), 16323),
    ],
)
def test_sizes_that_are_drawn(sizes: tuple[tuple[float, float], ...], room: float) -> None:
    found = full_batches(sizes, room)
    assert found.mean == pytest.approx(packed(sizes, room), rel=0.02)
    assert sum(share for _, share in found.counts) == pytest.approx(1)


def test_a_linger_that_ends_most_batches_lets_any_record_begin_the_next() -> None:
    room = 17139
    full = full_batches(IN_TURN, room)
    lingering = full_batches(IN_TURN, room, lingering=0.01)
    assert lingering.mean == pytest.approx((1.5 + 2.25) / 2, rel=0.01)
    assert lingering.mean > full.mean


def test_many_kinds_of_sizes_are_taken_as_any_size() -> None:
    random = Random(3)
    sizes = tuple((float(random.randrange(50, 3000)), 1.0) for _ in range(40))
    assert full_batches(sizes, 16323).mean == pytest.approx(packed(sizes, 16323), rel=0.02)


@pytest.mark.parametrize("mean", [0.3, 4.0, 30.0, 400.0])
def test_chances_of_counts(mean: float) -> None:
    for most in (0, 3, 12, 13, 30, 400, 440):
        terms = (math.exp(number * math.log(mean) - mean - math.lgamma(number + 1)) for number in range(most + 1))
        assert at_most(mean, most) == pytest.approx(math.fsum(terms), abs=0.003)
    assert at_most(mean, -1) == 0.0
    assert at_most(0.0, 0) == 1.0
    assert reaches(math.inf, 5) == 1.0
