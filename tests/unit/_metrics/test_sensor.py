"""_metrics.sensor: sums, maxima and windows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forebay._metrics.sensor import Sensor

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
