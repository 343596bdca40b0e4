"""The one reader of time: units, directions, and that both numbers are of this moment."""

from __future__ import annotations

import time

from forebay._runtime.clock import SystemClock


def test_now_is_the_monotonic_clock_in_milliseconds_with_its_fraction() -> None:
    before = time.monotonic_ns() / 1e6
    now = SystemClock().now()
    after = time.monotonic_ns() / 1e6
    assert before <= now <= after
    assert isinstance(now, float)


def test_wall_is_unix_time_in_whole_milliseconds() -> None:
    before = time.time_ns() // 1_000_000
    wall = SystemClock().wall()
    after = time.time_ns() // 1_000_000
    assert before <= wall <= after
    assert isinstance(wall, int)


def test_now_never_goes_back() -> None:
    clock = SystemClock()
    readings = [clock.now() for _ in range(1000)]
    assert readings == sorted(readings)


def test_wall_is_of_this_moment_however_often_it_is_asked() -> None:
    """Most answers are of the call before: none of them of a millisecond that is over."""
    clock = SystemClock()
    seen: set[int] = set()
    # So many milliseconds, however long a busy machine takes to show them.
    while len(seen) < 16:
        before = time.time_ns() // 1_000_000
        wall = clock.wall()
        assert before <= wall <= time.time_ns() // 1_000_000
        seen.add(wall)


def test_wall_after_a_pause() -> None:
    clock = SystemClock()
    before = clock.wall()
    time.sleep(0.003)
    assert before + 3 <= clock.wall() <= time.time_ns() // 1_000_000
