"""The clock of the tests itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._runtime.manual_clock import ManualClock


def test_it_moves_only_when_told_and_both_readings_together() -> None:
    clock = ManualClock(now=5.0, wall=1_000)
    assert (clock.now(), clock.wall()) == (5.0, 1_000)
    clock.advance(20.5)
    assert (clock.now(), clock.wall()) == (25.5, 1_020)


def test_fractions_of_a_millisecond_add_up_in_both() -> None:
    clock = ManualClock(now=0.0, wall=1_000)
    seen = []
    for _ in range(8):
        clock.advance(0.375)
        seen.append(clock.wall())
    assert seen == [1_000, 1_000, 1_001, 1_001, 1_001, 1_002, 1_002, 1_003]
    assert clock.now() == 3.0


@given(st.lists(st.integers(0, 10_000), max_size=30))
def test_the_wall_clock_shows_the_whole_milliseconds_that_passed(quarters: list[int]) -> None:
    clock = ManualClock(now=0.0, wall=1_000)
    for quarter in quarters:
        clock.advance(quarter / 4)
    assert clock.wall() == 1_000 + sum(quarters) // 4
    assert clock.now() == sum(quarters) / 4


def test_its_two_readings_start_far_apart() -> None:
    clock = ManualClock()
    assert clock.wall() - clock.now() > 1e9


def test_it_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="does not go back: -1"):
        ManualClock().advance(-1)


def test_it_moves_to_a_time_exactly() -> None:
    clock = ManualClock(now=0.1, wall=1_000)
    clock.move_to(0.3)
    assert (clock.now(), clock.wall()) == (0.3, 1_000)
    clock.move_to(1.4)
    assert (clock.now(), clock.wall()) == (1.4, 1_001)
    with pytest.raises(ValueError, match="does not go back"):
        clock.move_to(1.3)
