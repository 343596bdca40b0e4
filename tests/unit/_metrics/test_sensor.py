"""_metrics.sensor: sums, maxima and windows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forebay._metrics.sensor import BOUNDS_MS, Histogram, Sensor

NEVER = float("-inf")


def test_record() -> None:
    sensor = Sensor(10.0)
    sensor.record(3)
    sensor.record(1.5)
    assert (sensor.total, sensor.count, sensor.born) == (4.5, 2, 10.0)
    assert sensor.windowed(NEVER) == (4.5, 2, 3.0, 10.0)


def test_record_many() -> None:
    sensor = Sensor(0.0)
    sensor.record_many(100, 4, 40)
    sensor.record(30)
    assert sensor.windowed(NEVER) == (130.0, 5, 40.0, 0.0)


def test_windows_are_apart_and_totals_go_on() -> None:
    sensor = Sensor(0.0)
    sensor.record(5)
    sensor.close_window(100.0, NEVER)
    sensor.record(2)
    assert sensor.windowed(NEVER) == (7.0, 2, 5.0, 0.0)
    assert sensor.windowed(0.0) == (2.0, 1, 2.0, 100.0)
    assert (sensor.total, sensor.count) == (7.0, 2)


def test_an_expired_window_is_forgotten() -> None:
    sensor = Sensor(0.0)
    sensor.record(5)
    sensor.close_window(100.0, NEVER)
    sensor.close_window(200.0, 0.0)
    assert sensor.windowed(NEVER) == (0.0, 0, NEVER, 100.0)


def test_a_negative_maximum() -> None:
    sensor = Sensor(0.0)
    sensor.record(-3)
    assert sensor.windowed(NEVER)[2] == -3.0


@given(st.lists(st.lists(st.integers(-1000, 1000), max_size=4), min_size=1, max_size=6), st.integers(0, 6))
def test_windows_add_up(windows: list[list[int]], kept: int) -> None:
    """What is read is exactly the last windows' values, whatever was before."""
    sensor = Sensor(0.0)
    for number, values in enumerate(windows):
        if number:
            sensor.close_window(float(number), NEVER)
        for value in values:
            sensor.record(value)
    first = max(len(windows) - 1 - kept, 0)
    last = [value for values in windows[first:] for value in values]
    total, count, maximum, start = sensor.windowed(first - 0.5)
    assert (total, count, start) == (sum(last), len(last), float(first))
    assert maximum == max(last, default=NEVER)
    assert sensor.total == sum(sum(values) for values in windows)


def test_each_value_is_in_the_bucket_of_its_bound() -> None:
    histogram = Histogram()
    for at, bound in enumerate(BOUNDS_MS):
        histogram.record_even(bound, bound, at + 1)
    histogram.record_even(BOUNDS_MS[-1] * 1.01, 1e9, 3)
    histogram.record_even(0, 0, 5)
    assert histogram.buckets() == (6, *range(2, len(BOUNDS_MS) + 1), 3)


def test_values_are_spread_evenly() -> None:
    histogram = Histogram()
    histogram.record_even(1.5, 5.5, 100)
    assert dict(zip(BOUNDS_MS, histogram.buckets(), strict=False)) == {
        **dict.fromkeys(BOUNDS_MS, 0),
        2.0: 12,  # an eighth of the way
        4.0: 50,
        8.0: 38,
    }
    assert histogram.total == 350


@given(st.floats(0, 3e5), st.floats(0, 3e5), st.integers(1, 10_000))
def test_no_value_is_lost_or_outside_of_its_range(one: float, other: float, count: int) -> None:
    low, high = sorted((one, other))
    histogram = Histogram()
    histogram.record_even(low, high, count)
    buckets = histogram.buckets()
    assert sum(buckets) == count
    assert min(buckets) >= 0
    for at, number in enumerate(buckets):
        above = BOUNDS_MS[at] if at < len(BOUNDS_MS) else float("inf")
        below = BOUNDS_MS[at - 1] if at else -1.0
        assert number == 0 or (low <= above and high > below)
