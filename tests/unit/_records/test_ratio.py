from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._records.compression import CompressionType
from forebay._records.ratio import DETERIORATE_STEP, IMPROVING_STEP, CompressionRatioEstimator

LZ4, ZSTD = CompressionType.LZ4, CompressionType.ZSTD


@pytest.mark.parametrize(("current", "observed"), [(0.8, 0.84), (0.6, 0.7), (0.6, 0.4), (0.004, 0.001)])
def test_never_below_the_observed(current: float, observed: float) -> None:
    """J CompressionRatioEstimatorTest.testUpdateEstimation."""
    estimator = CompressionRatioEstimator()
    estimator.set("t", LZ4, current)
    assert estimator.update("t", LZ4, observed) >= observed
    assert estimator.estimation("t", LZ4) >= observed


def test_rises_fast_and_falls_slowly() -> None:
    """A13: initial ratio 1.0, improving step 0.005, deteriorate step 0.05."""
    estimator = CompressionRatioEstimator()
    assert estimator.estimation("t", LZ4) == 1.0
    assert estimator.update("t", LZ4, 0.5) == pytest.approx(0.995)
    assert estimator.update("t", LZ4, 0.5) == pytest.approx(0.99)
    assert estimator.update("t", LZ4, 0.991) == pytest.approx(1.04)
    assert estimator.update("t", LZ4, 1.5) == 1.5
    assert estimator.update("t", LZ4, 1.5) == 1.5


def test_topics_and_codecs_are_apart_and_forgotten_on_request() -> None:
    estimator = CompressionRatioEstimator()
    estimator.set("a", LZ4, 0.25)
    assert [estimator.estimation(*each) for each in (("a", LZ4), ("b", LZ4), ("a", ZSTD))] == [0.25, 1.0, 1.0]
    estimator.reset("a")
    estimator.reset("never seen")
    assert estimator.estimation("a", LZ4) == 1.0


@given(st.floats(0.001, 3), st.floats(0.001, 3))
def test_one_update_moves_by_a_step_at_most_unless_it_must(current: float, observed: float) -> None:
    estimator = CompressionRatioEstimator()
    estimator.set("t", LZ4, current)
    updated = estimator.update("t", LZ4, observed)
    assert observed <= updated <= max(observed, current + DETERIORATE_STEP)
    assert updated >= current - IMPROVING_STEP


def test_no_update_is_lost_between_threads() -> None:
    estimator = CompressionRatioEstimator()

    def improve() -> None:
        for _ in range(25):
            estimator.update("t", LZ4, 0.001)

    threads = [threading.Thread(target=improve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert estimator.estimation("t", LZ4) == pytest.approx(1.0 - 100 * IMPROVING_STEP)
