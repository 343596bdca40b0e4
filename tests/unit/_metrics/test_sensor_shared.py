"""SharedSensor: the numbers of a sensor that several threads record to."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator

import pytest

import forebay
from forebay._metrics.sensor import Sensor, SharedSensor
from tests.fakes.steps import within_time

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


def test_neither_a_handler_nor_a_finaliser_comes_in_between() -> None:
    """The lock is not re-entrant, and the sender's thread takes it: nothing of Python's may run under it."""
    if forebay.implementation == "interpreted":
        pytest.skip("there all of it is code of Python's")
    sensor = SharedSensor(0.0)
    calls: list[object] = []

    class Recording:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            sensor.record(1)

    def use() -> None:
        for number in range(200):
            Recording()
            sensor.record(1)
            sensor.close_window(float(number), NEVER)
            sensor.windowed(NEVER)

    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        within_time(use, "a sensor with finalisers that record")
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert sensor.total == 400.0
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code) if event == "call" else None)
    try:
        sensor.record(1)
        sensor.record_many(4, 2, 3)
        sensor.close_window(1000.0, NEVER)
        sensor.windowed(NEVER)
    finally:
        sys.setprofile(None)
    assert calls == []
