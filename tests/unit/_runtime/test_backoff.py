"""Delays that double, with jitter, up to a maximum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._runtime.backoff import ExponentialBackoff


def middle() -> float:
    """A random source that always draws the middle, so that the jitter is nothing."""
    return 0.5


@pytest.mark.parametrize(("failures", "expected"), [(0, 100), (1, 200), (2, 400), (3, 400), (10_000, 400)])
def test_without_jitter_the_delay_doubles_up_to_the_maximum(failures: int, expected: float) -> None:
    """A10 ExponentialBackoff: 100, 200, 400, 400."""
    assert ExponentialBackoff(100, 400, middle, jitter=0).delay(failures) == pytest.approx(expected)


@given(st.integers(0, 10), st.floats(0, 1, exclude_max=True))
def test_jitter_spreads_by_a_fifth_and_never_beyond_the_maximum(failures: int, draw: float) -> None:
    """A10 ExponentialBackoff: within 20 % of the doubled delay, at most the maximum."""
    delay = ExponentialBackoff(100, 2000, lambda: draw).delay(failures)
    plain = min(100 * 2**failures, 2000)
    assert plain * 0.8 - 1e-6 <= delay <= min(plain * 1.2, 2000) + 1e-6


@pytest.mark.parametrize("draw", [0.0, 0.999])
def test_the_ends_of_the_draw_are_the_ends_of_the_spread(draw: float) -> None:
    assert ExponentialBackoff(100, 2000, lambda: draw).delay(0) == pytest.approx(80 + 40 * draw)


@pytest.mark.parametrize(("initial", "maximum"), [(100, 100), (100, 50), (0, 0)])
def test_a_maximum_that_is_no_larger_means_a_constant_without_jitter(initial: float, maximum: float) -> None:
    """A10 ExponentialBackoff: max <= initial is constant at the smaller of the two."""
    draws = iter([0.0, 0.9, 0.3])
    backoff = ExponentialBackoff(initial, maximum, lambda: next(draws))
    assert [backoff.delay(failures) for failures in (0, 1, 7)] == [min(initial, maximum)] * 3
    assert next(draws) == 0.0
