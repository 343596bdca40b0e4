"""_metrics.shared: a sensor's numbers, whoever records."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from forebay._metrics.sensor import Sensor
from forebay._metrics.shared import SharedSensor

NEVER = float("-inf")


@pytest.fixture
def many_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_the_same_numbers_as_a_sensor_of_one_writer() -> None:
    shared, single = SharedSensor(10.0), Sensor(10.0)
    for sensor in (shared, single):
        sensor.record(3)
        sensor.close_window(100.0, NEVER)
        sensor.record_many(100, 4, 40)
    assert (shared.total, shared.count, shared.born) == (single.total, single.count, single.born) == (103.0, 5, 10.0)
    assert shared.windowed(NEVER) == single.windowed(NEVER) == (103.0, 5, 40.0, 10.0)
    assert shared.windowed(10.0) == single.windowed(10.0) == (100.0, 4, 40.0, 100.0)


@pytest.mark.usefixtures("many_switches")
def test_several_threads_lose_nothing() -> None:
    sensor = SharedSensor(0.0)
    begin = threading.Barrier(4)

    def count() -> None:
        begin.wait()
        for _ in range(3000):
            sensor.record(1)
            sensor.record_many(4, 2, 3)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sensor.total, sensor.count) == (60_000.0, 36_000)
    assert sensor.windowed(NEVER) == (60_000.0, 36_000, 3.0, 0.0)


def test_a_handler_that_records_while_its_thread_does_is_not_stuck() -> None:
    sensor = SharedSensor(0.0)
    done = threading.Event()

    def interrupted() -> None:
        with sensor._lock:  # where record() is when a signal handler or a finaliser comes in between
            sensor.record(2)
        done.set()

    threading.Thread(target=interrupted, daemon=True).start()
    assert done.wait(10)
    assert (sensor.total, sensor.count) == (2.0, 1)
