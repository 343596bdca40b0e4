"""Distributions of waits: quantiles, sums, mixtures, and the ways to make one."""

from __future__ import annotations

import math

import pytest

from forebay._closed_forms.latency import latency, later_of, mixed, uniform, waiting


def test_quantiles_are_points() -> None:
    found = latency([(3.0, 1), (1.0, 2), (2.0, 1)])
    assert [found.quantile(share) for share in (0.0, 0.5, 0.51, 0.75, 1.0)] == [1.0, 1.0, 2.0, 2.0, 3.0]
    assert found.mean == pytest.approx(1.75)


def test_nothing_is_no_wait() -> None:
    assert latency([]).p99 == 0.0
    assert waiting(0.0, 5.0).p999 == 0.0


def test_a_sum_has_the_sum_of_the_means() -> None:
    one, other = latency(uniform(0, 10)), waiting(0.3, 4.0)
    both = one.plus(other).later(2.0)
    assert both.mean == pytest.approx(5 + 1.2 + 2)
    assert both.p50 > one.p50 + 2


def test_a_mixture_is_not_a_mean() -> None:
    found = mixed([(0.6, latency([(1.0, 1)])), (0.4, latency([(101.0, 1)]))])
    assert (found.p50, found.p99) == (1.0, 101.0)
    assert found.mean == pytest.approx(41)


def test_the_longer_of_two_waits_goes_by_rank() -> None:
    slot = latency([(0.0, 0.5), (8.0, 0.5)])
    closing = latency(uniform(0, 10, 10))
    found = later_of(slot, closing)
    assert found.quantile(0.5) == pytest.approx(4.5)
    assert found.quantile(0.55) == pytest.approx(8.0)
    assert found.quantile(1.0) == pytest.approx(9.5)


def test_a_wait_in_a_queue_has_an_exponential_tail() -> None:
    found = waiting(0.5, 10.0)
    assert found.mean == pytest.approx(5.0)
    assert found.p50 == 0.0
    assert found.p99 == pytest.approx(10 * math.log(50), rel=0.1)
    assert found.p999 == pytest.approx(10 * math.log(500), rel=0.1)
