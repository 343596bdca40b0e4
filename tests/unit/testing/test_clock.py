"""The clock of the tests itself."""

from __future__ import annotations

import pytest

from forebay.testing.clock import ManualClock


def test_it_moves_only_when_told_and_both_readings_together() -> None:
    clock = ManualClock(now=5.0, wall=1_000)
    assert (clock.now(), clock.wall()) == (5.0, 1_000)
    clock.advance(20.5)
    assert (clock.now(), clock.wall()) == (25.5, 1_020)


def test_its_two_readings_start_far_apart() -> None:
    clock = ManualClock()
    assert clock.wall() - clock.now() > 1e9


def test_it_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="does not go back: -1"):
        ManualClock().advance(-1)
