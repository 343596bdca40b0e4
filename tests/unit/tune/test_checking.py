"""A check: the load as its threads send it, what is measured of it, and the comparison with a prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.config import ProducerConfig
from forebay.errors import KafkaTimeoutError
from forebay.testing.clock import ManualClock
from forebay.tune import Brokers, Stalls, Stream, TuneError, Workload, checking, predict
from forebay.tune._probe import HEADER
from forebay.tune._world.callers import records
from forebay.tune.checking import Counters, Load, Measured, Row
from forebay.tune.prediction import Prediction
from forebay.tune.workload import Cycle
from tests.unit.tune.real import Speed, real_world
from tests.unit.tune.traces import steady, trace_of


def overslept(p50: float, p99: float, longest: float) -> Stalls:
    return Stalls(seconds=1.0, spread=(*[p50] * 99, p99, longest))


GOOD = overslept(0.1, 0.3, 2.0)


class Fake:
    """A producer of which each call takes ``took`` ms in turn; waits are counted for those of 5 ms and more."""

    def __init__(self, clock: ManualClock, *took: float) -> None:
        self.clock = clock
        self.calls: list[tuple[float, str, bytes, bytes | None, int | None]] = []
        self.outcomes: list[Callable[[Any], None]] = []
        self.waits = 0
        self._took = took or (0.0,)

    def send(self, topic: str, value: bytes, *, key: Any, partition: Any, on_delivery: Callable[[Any], None]) -> None:
        self.calls.append((self.clock.now(), topic, value, key, partition))
        took = self._took[(len(self.calls) - 1) % len(self._took)]
        self.waits += took >= 5
        self.clock.advance(took)
        self.outcomes.append(on_delivery)

    def counters(self) -> Counters:
        return Counters(waits=self.waits)


def sent(stream: Stream, *took: float, ms: float = 1000.0) -> tuple[Fake, Load]:
    """What one thread sends in so long."""
    clock = ManualClock()
    fake = Fake(clock, *took)
    loading = Load(fake.send, fake.counters, clock, lambda seconds: clock.advance(1000 * seconds))
    (run,) = loading.threads(Workload([stream]), "real", 7, clock.now(), clock.now() + ms)
    run()
    return fake, loading


def test_records_are_those_of_the_simulation_at_their_times() -> None:
    stream = Stream(rate=200, sizes=Cycle((10, 20)))
    fake, loading = sent(stream)
    begin = ManualClock().now()
    wanted = list(records(stream, ("real",), "7 stream 0 of producer 0", begin, begin + 1000))
    assert [call[1:] for call in fake.calls] == [record[1:] for record in wanted]
    assert [call[0] for call in fake.calls] == pytest.approx([record[0] for record in wanted])
    assert loading.sent == len(wanted) > 100


def test_each_stream_has_its_threads() -> None:
    clock = ManualClock()
    fake = Fake(clock)
    loading = Load(fake.send, fake.counters, clock, lambda seconds: None)
    load = Workload([Stream(rate=5, threads=3), Stream(rate=5)])
    assert len(loading.threads(load, "real", 1, 0, 1000)) == 4


def test_a_thread_that_was_held_sends_what_came_meanwhile_at_once() -> None:
    stream = Stream(rate=100, arrivals="regular")
    fake, loading = sent(stream, 100.0, *[0.0] * 200)
    times = [call[0] - fake.calls[0][0] for call in fake.calls]
    assert times[1:10] == [100.0] * 9
    assert loading.longest_hold_ms == pytest.approx(100)
    for outcome in fake.outcomes:
        outcome(SimpleNamespace(error=None))
    assert len(loading.latencies) == loading.sent


def test_a_long_call_that_did_not_wait_for_memory_is_no_hold() -> None:
    _fake, loading = sent(Stream(rate=100, arrivals="regular"), 4.0)
    assert loading.longest_hold_ms == 0


def test_a_closed_caller_thinks_between_calls() -> None:
    fake, loading = sent(Stream(callers="closed", think_ms=50), 0.0)
    times = [call[0] - fake.calls[0][0] for call in fake.calls]
    assert times == pytest.approx([50 * number for number in range(20)])
    fake.outcomes[0](SimpleNamespace(error=None))
    assert loading.latencies.quantile(1) == pytest.approx(1000)


def test_a_trace_is_sent_as_it_came() -> None:
    """At its times, with its sizes, and what a call was held delays what comes after it."""
    trace = trace_of(*steady(100, size=30), *steady(50, key=4, partition=2), topics=["a"], leaders={"a": [1, 2, 1]})
    load = checking.load_of(Workload.replaying(trace), "real", 3)
    assert load.trace is not None and load.topics == load.trace.topics == (("real", 3),)
    assert load.trace.homes(2) == {"real": [1, 2, 1]}
    clock = ManualClock()
    begin = clock.now()
    fake = Fake(clock, *[0.0] * 9, 200.0, *[0.0] * 500)
    loading = Load(fake.send, fake.counters, clock, lambda seconds: clock.advance(1000 * seconds))
    (run,) = loading.threads(load, "real", 7, begin, begin + 2000)
    run()
    wanted = list(load.trace.replay(begin, begin + 2000))
    assert [call[1:] for call in fake.calls] == [record[1:] for record in wanted[: len(fake.calls)]]
    assert {call[3:] for call in fake.calls} == {(None, None), (bytes(4), 2)}
    times = [record[0] + (0 if at < 10 else 200) for at, record in enumerate(wanted)]
    assert [call[0] for call in fake.calls] == pytest.approx(times[: len(fake.calls)])
    assert len(wanted) == 300 and len(fake.calls) == 270 and loading.longest_hold_ms == 200


def test_a_part_of_a_trace_begins_where_that_of_the_simulation_does() -> None:
    trace = trace_of(*steady(100), *(sent._replace(created=500_000) for sent in steady(100)), topics=["a"])
    load = checking.load_of(Workload.replaying(trace), "real", 3)
    clock = ManualClock()
    fake = Fake(clock)
    loading = Load(fake.send, fake.counters, clock, lambda seconds: clock.advance(1000 * seconds))
    (run,) = loading.threads(load, "real", 5, clock.now(), clock.now() + 300)
    run()
    found = predict(load, seed=5, seconds=0.3)
    assert found.sent == len(fake.calls) and found.sent not in (0, 60)


def test_a_record_that_fails_is_lost_and_has_no_latency() -> None:
    clock = ManualClock()
    fake = Fake(clock)
    loading = Load(fake.send, fake.counters, clock, lambda seconds: None)
    begin = clock.now()
    clock.advance(4)
    loading.settled(begin, SimpleNamespace(error=None))  # type: ignore[arg-type]
    loading.settled(begin, SimpleNamespace(error=KafkaTimeoutError("late")))  # type: ignore[arg-type]
    assert (loading.lost, len(loading.latencies), loading.latencies.quantile(0.5)) == (1, 1, 4.0)


def test_figures_of_a_run() -> None:
    clock = ManualClock()
    fake = Fake(clock)
    loading = Load(fake.send, fake.counters, clock, lambda seconds: None)
    for ms in (1.0, 2.0, 3.0, 4.0):
        loading.latencies.add_one(ms)
    found = checking.measured_of(
        loading, GOOD, Counters(5, 10, 1000.0), Counters(25, 50, 41_000.0), seconds=10, batch_size=2000
    )
    assert (found.p50, found.p99, found.requests_s, found.fill) == (2.0, 4.0, 2.0, 0.5)
    empty = checking.measured_of(loading, GOOD, Counters(), Counters(), seconds=1, batch_size=1)
    assert empty.fill == 0


def measured_as(found: Any, **changed: Any) -> Measured:
    return Measured(
        **{
            "p50": found.latency.p50,
            "p99": found.latency.p99,
            "requests_s": found.requests_s,
            "fill": found.fill,
            "longest_hold_ms": 0.0,
            "sent": found.sent,
            "lost": 0,
            "stalls": GOOD,
            **changed,
        }
    )


def test_what_is_within_and_what_is_outside() -> None:
    found = predict(Workload(rate=200), {"linger.ms": 20}, brokers=Brokers(), seconds=2)
    assert all(row.kept for row in checking.compared(found, measured_as(found)))
    changed: dict[str, tuple[str, float, float]] = {
        "p50": ("p50, ms", 1.1, 1.2),
        "p99": ("p99, ms", 1.3, 1.4),
        "requests_s": ("requests/s", 1.04, 1.06),
        "fill": ("fill", 0.96, 0.94),
    }
    for field, (name, good, bad) in changed.items():
        true = getattr(measured_as(found), field)
        assert all(row.kept for row in checking.compared(found, measured_as(found, **{field: good * true})))
        rows = checking.compared(found, measured_as(found, **{field: bad * true}))
        assert [row.name for row in rows if not row.kept] == [name]
    rows = checking.compared(found, measured_as(found, longest_hold_ms=500.0, lost=1))
    assert [row.name for row in rows if not row.kept] == ["longest hold, ms", "lost"]


def test_what_is_lost_may_differ_by_a_batch_of_the_prediction_that_counts() -> None:
    found = predict(Workload(rate=200), {"linger.ms": 20}, brokers=Brokers(), seconds=2)
    losing = replace(found, failed={"expired": 10})
    assert losing.records_a_batch > 2

    def lost(predicted: Prediction, stalled: Prediction | None, seen: int) -> bool:
        return checking.compared(predicted, measured_as(found, lost=seen), stalled)[-1].kept

    assert lost(found, losing, 8) and not lost(found, losing, 0)
    assert lost(losing, None, 8) and not lost(losing, found, 1) and lost(losing, found, 0)


def test_the_table() -> None:
    rows = [Row("p50, ms", 11.0, 10.0, 1.5), Row("lost", 0, 5, 0), Row("longest hold, ms", 0.0, 0.0, 1.0)]
    calm = Measured(10.0, 20.0, 1.0, 0.5, 0.0, 10, 5, GOOD)
    text = checking.comparison_text(rows, calm)
    assert "p50, ms                    11.00       10.00      +10.0%       15%\n" in text
    assert "lost                           0           5     -100.0%        0%  outside\n" in text
    assert "longest hold, ms            0.00        0.00                     1\n" in text
    assert "overslept by 0.10 ms in the median, p99 0.30, longest 2.0\n" in text
    assert "the machine was busy" not in text
    busy = Measured(10.0, 20.0, 1.0, 0.5, 0.0, 10, 5, overslept(0.1, 2.1, 90.0))
    assert "above a fifth of the p50: the machine was busy" in checking.comparison_text(rows, busy)


def test_what_is_predicted_with_the_stalls_of_the_run_counts() -> None:
    load, settings = Workload(rate=200), {"linger.ms": 20}
    plain = predict(load, settings, seconds=2)
    stalls = Stalls(seconds=1.0, long=tuple((20.0 * number, 10.0) for number in range(40)))
    stalled = predict(load, settings, seconds=2, stalls=stalls)
    assert stalled.latency.p50 > 1.15 * plain.latency.p50
    measured = measured_as(stalled, longest_hold_ms=stalled.longest_hold_ms)
    rows = checking.compared(plain, measured, stalled)
    assert all(row.kept for row in rows)
    assert not all(row.kept for row in checking.compared(plain, measured))
    text = checking.comparison_text(rows, measured)
    assert text.splitlines()[0].split() == [
        "predicted",
        "measured",
        "difference",
        "with",
        "stalls",
        "difference",
        "allowed",
    ]
    assert text.splitlines()[1].split()[6] == "+0.0%"


def test_the_load_under_the_topics_name() -> None:
    load = Workload([Stream(rate=10, topic="orders"), Stream(rate=5)], topics={"orders": 3})
    found = checking.load_of(load, "real", 3)
    assert found.topics == (("real", 3),)
    assert [(stream.rate, stream.topic) for stream in found.streams] == [(10, None), (5, None)]


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (Workload(rate=1, topics={"a": 3, "b": 3}), "the load has 2 topics; a check sends to one"),
        (Workload(rate=1, topics={"a": 3}, producers=4), "the load has 4 producers; a check is made with one"),
        (Workload(rate=1, topics={"a": 3}, batch_rows=9), "the load has batch_rows; a check sends single records"),
        (Workload(rate=1, topics={"a": 5}), "topic real has 3 partitions; topic a of the load has 5"),
    ],
)
def test_loads_that_a_check_cannot_send(load: Workload, said: str) -> None:
    with pytest.raises(TuneError, match=said):
        checking.load_of(load, "real", 3)


def test_a_topic_that_begins_with_the_tuners_record_may_be_filled() -> None:
    world = real_world(Speed(), Speed())
    config = ProducerConfig(**world.config)
    assert checking.scratch(config, "t", world.around) == (2, 2)
    world.log.write(b"", headers=[(HEADER, b"1")])
    world.log.write(b"a record of the load")
    assert checking.scratch(config, "t", world.around) == (2, 2)


def test_a_topic_of_others_may_not() -> None:
    world = real_world(Speed())
    world.log.write(b"order")
    world.log.write(b"", headers=[(HEADER, b"1")])
    with pytest.raises(TuneError, match="partition 0 holds a record at offset 0 that is not the tuner's"):
        checking.scratch(ProducerConfig(**world.config), "t", world.around)


def test_each_partition_gets_a_record_that_says_whose_it_is() -> None:
    calls: list[Any] = []

    class Producer:
        def send(self, topic: str, value: bytes, *, partition: int, headers: Any) -> None:
            calls.append((topic, partition, headers))

        def flush(self) -> None:
            calls.append("flush")

    checking.warm_up(Producer(), "t", 2)
    assert calls == [("t", 0, [("forebay-tune", b"1")]), ("t", 1, [("forebay-tune", b"1")]), "flush"]
