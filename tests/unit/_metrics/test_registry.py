"""_metrics.registry: windows, rates and reading."""

from __future__ import annotations

import math
import threading
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._metrics.registry import Kind, MetricName, MetricsRegistry
from forebay._metrics.sensor import Sensor
from forebay.testing.clock import ManualClock
from tests.support.pace import HANG_S

MEASURED = (Kind.TOTAL, Kind.COUNT_TOTAL, Kind.RATE, Kind.COUNT_RATE, Kind.AVG, Kind.MAX, Kind.RATIO)
NAMES = [MetricName(kind.name, "group", "words", (), kind) for kind in MEASURED]


def make(clock: ManualClock, samples: int = 2, window_ms: float = 30_000) -> tuple[MetricsRegistry, Sensor]:
    registry = MetricsRegistry(clock.now(), num_samples=samples, window_ms=window_ms)
    return registry, add(registry, clock, NAMES)


def add(registry: MetricsRegistry, clock: ManualClock, names: list[MetricName]) -> Sensor:
    """A new sensor that is read under these names."""
    sensor = Sensor(clock.now())
    registry.add([sensor], len(names), lambda: [(name, sensor) for name in names])
    return sensor


def read(registry: MetricsRegistry, clock: ManualClock) -> dict[str, float]:
    return {name.name: float(value) for name, value in registry.snapshot(clock.now()).items()}


def test_kinds() -> None:
    clock = ManualClock()
    registry, sensor = make(clock)
    sensor.record(100)
    sensor.record(300)
    clock.advance(20_000)
    found = read(registry, clock)
    assert found["TOTAL"] == 400
    assert found["COUNT_TOTAL"] == 2
    assert found["AVG"] == 200
    assert found["MAX"] == 300
    # 20 s so far, and an empty window of 30 s as if it had been before.
    assert found["RATE"] == pytest.approx(400 / 50)
    assert found["COUNT_RATE"] == pytest.approx(2 / 50)
    assert found["RATIO"] == pytest.approx(400 / 50e9)


def test_nothing_recorded() -> None:
    clock = ManualClock()
    found = read(make(clock)[0], clock)
    assert math.isnan(found["AVG"])
    assert math.isnan(found["MAX"])
    assert found["RATE"] == found["COUNT_RATE"] == found["TOTAL"] == 0


def test_windows_slide() -> None:
    clock = ManualClock()
    registry, sensor = make(clock)
    sensor.record(600)
    clock.advance(30_000)
    registry.roll(clock.now())
    sensor.record(300)
    clock.advance(15_000)
    found = read(registry, clock)
    assert found["RATE"] == pytest.approx(900 / 45)
    assert (found["AVG"], found["MAX"]) == (450, 600)
    clock.advance(15_000)  # the first window is as old as both windows together
    found = read(registry, clock)
    assert found["RATE"] == pytest.approx(300 / 30)
    assert (found["AVG"], found["MAX"], found["TOTAL"]) == (300, 300, 900)
    clock.advance(600_000)
    assert read(registry, clock)["RATE"] == 0


def test_a_late_roll_keeps_the_windows_in_step() -> None:
    clock = ManualClock()
    registry, sensor = make(clock)
    start = clock.now()
    sensor.record(1)
    clock.advance(95_000)
    registry.roll(clock.now())
    assert sensor.windowed(float("-inf")) == (0.0, 0, float("-inf"), start + 90_000)


def test_rate_of_a_young_sensor_is_over_its_own_age() -> None:
    clock = ManualClock()
    registry, _ = make(clock)
    clock.advance(29_000)
    young = add(registry, clock, [MetricName("young", "group", "", (), Kind.RATE)])
    young.record(40)
    clock.advance(10_000)
    assert read(registry, clock)["young"] == pytest.approx(40 / 40)


@given(st.integers(1, 4), st.lists(st.tuples(st.integers(0, 70_000), st.integers(0, 100)), max_size=20))
def test_rates_are_never_infinite_and_totals_exact(samples: int, events: list[tuple[int, int]]) -> None:
    clock = ManualClock()
    registry, sensor = make(clock, samples=samples)
    for pause, value in events:
        sensor.record(value)
        clock.advance(pause)
        registry.roll(clock.now())
        found = read(registry, clock)
        assert 0 <= found["RATE"] <= sum(value for _, value in events) / 30
        assert found["AVG"] <= found["MAX"] or math.isnan(found["AVG"])
    assert read(registry, clock)["TOTAL"] == sum(value for _, value in events)


def test_gauges_are_asked_and_may_fail() -> None:
    clock = ManualClock()
    registry = MetricsRegistry(clock.now())
    values = [1]
    registry.gauge(MetricName("good", "group", ""), lambda: values[0])
    registry.gauge(MetricName("bad", "group", ""), lambda: values[7])
    values[0] = 5
    found = read(registry, clock)
    assert found["good"] == 5
    assert math.isnan(found["bad"])


def test_a_gauge_may_ask_the_registry() -> None:
    clock = ManualClock()
    registry, _ = make(clock)
    registry.gauge(MetricName("count", "group", ""), lambda: len(registry))
    assert read(registry, clock)["count"] == len(NAMES) + 1


def test_clear() -> None:
    clock = ManualClock()
    registry, sensor = make(clock)
    registry.clear()
    sensor.record(1)
    assert registry.snapshot(clock.now()) == {}
    assert len(registry) == 0


def test_readings_have_sums_and_histograms() -> None:
    clock = ManualClock()
    registry, sensor = make(clock)
    histogram = registry.histogram(MetricName("ack", "group", "", (), Kind.HISTOGRAM, "ms"))
    registry.gauge(MetricName("now", "group", ""), lambda: 5)
    sensor.record(100)
    sensor.record(300)
    histogram.record_even(3.0, 3.0, 10)
    found = {reading.name.name: reading for reading in registry.readings(clock.now())}
    assert (found["AVG"].value, found["AVG"].total, found["AVG"].number) == (200, 400, 2)
    assert (found["now"].value, found["now"].number) == (5, 0)
    assert (found["ack"].value, found["ack"].total, found["ack"].number) == (10, 30, 10)
    assert found["ack"].buckets == histogram.buckets()
    assert "ack" not in read(registry, clock)
    registry.clear()
    assert list(registry.readings(clock.now())) == []


def test_only_readings_that_are_wanted_are_read() -> None:
    clock = ManualClock()
    registry, _ = make(clock)
    histogram = MetricName("histogram", "group", "", (), Kind.HISTOGRAM)
    asked: list[str] = []

    def read_gauge(name: str) -> float:
        asked.append(name)
        return 1

    for name in ("gauge", "other"):
        registry.gauge(MetricName(name, "group", ""), partial(read_gauge, name))
    registry.histogram(histogram)
    found = [
        reading.name.name for reading in registry.readings(clock.now(), lambda name: name.name in ("MAX", "gauge"))
    ]
    assert (found, asked) == (["MAX", "gauge"], ["gauge"])
    assert [reading.name for reading in registry.readings(clock.now(), histogram.__eq__)] == [histogram]


def test_names_are_made_once_and_not_before_somebody_reads() -> None:
    clock = ManualClock()
    registry, sensor = MetricsRegistry(clock.now()), Sensor(clock.now())
    made: list[list[tuple[MetricName, Sensor]]] = []

    def name_all() -> list[tuple[MetricName, Sensor]]:
        made.append([(name, sensor) for name in NAMES])
        return made[-1]

    registry.add([sensor], len(NAMES), name_all)
    sensor.record(7)
    clock.advance(30_000)
    registry.roll(clock.now())
    assert (len(registry), made) == (len(NAMES), [])
    assert read(registry, clock) == read(registry, clock)
    assert len(made) == 1 and read(registry, clock)["MAX"] == 7


def test_value_by_name_and_tags() -> None:
    clock = ManualClock()
    registry = MetricsRegistry(clock.now())
    for node in ("node-1", "node-2"):
        registry.gauge(MetricName("m", "g", "", (("client-id", "c"), ("node-id", node))), partial(str, node))
    snapshot = registry.snapshot(clock.now())
    assert snapshot.value("m", "g", node_id="node-2") == "node-2"
    with pytest.raises(KeyError, match="2 metrics g:m"):
        snapshot.value("m", "g")
    with pytest.raises(KeyError, match="0 metrics producer-metrics:m"):
        snapshot.value("m")
    assert str(next(iter(snapshot))) == "g:m[client-id=c,node-id=node-1]"


def test_reading_while_recording_and_making_sensors() -> None:
    clock = ManualClock()
    registry, sensor = make(clock, window_ms=1)
    failures: list[BaseException] = []

    def read_often() -> None:
        try:
            for turn in range(300):
                registry.snapshot(clock.now() + turn)
        except BaseException as error:  # noqa: BLE001 - asserted on below
            failures.append(error)

    readers = [threading.Thread(target=read_often) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(500):
        sensor.record(1)
        if number % 10 == 0:
            add(registry, clock, [MetricName(f"s{number}", "group", "", (), Kind.TOTAL)])
    for reader in readers:
        reader.join(HANG_S)
    assert not failures
    assert (sensor.total, sensor.count) == (500.0, 500)
