"""Histograms, and what becomes of a batch's times."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from forebay._runtime.manual_clock import ManualClock
from forebay.tune.measures import POINTS, Entry, Histogram, Recorder

CONFIG = {"batch.size": 1000, "buffer.memory": 10_000, "linger.ms": 5}


def recorder(now: float = 0.0) -> tuple[Recorder, ManualClock]:
    clock = ManualClock(now=now)
    found = Recorder(clock, CONFIG, (1, 2))
    found.begin(0.0, 1000.0)
    return found, clock


def batch(**more: Any) -> Any:
    records = SimpleNamespace(payload_size=139, raw_size=139)
    facts = {"attempts": 0, "created": 10.0, "drained": 15.0, "sparse": True, "record_count": 2, "last_node": 2}
    return SimpleNamespace(**{**facts, "records": records, **more})


def entry(times: list[float], dues: list[float] | None = None) -> Entry:
    found = Entry()
    found.times, found.dues = times, dues or list(times)
    found.late = dues is not None
    return found


GOOD = SimpleNamespace(error=None, parts=None)


def test_quantiles_mean_and_count() -> None:
    found = Histogram()
    found.add([1000, 2000, 3000, 4000])
    found.add_one(10.0, 4)
    assert len(found) == 8
    assert [found.quantile(share) for share in (0, 0.125, 0.5, 0.51, 1)] == [1, 1, 4, 10, 10]
    assert found.mean() == 6.25
    other = Histogram()
    other.merge(found)
    assert other.quantile(0.5) == 4


def test_nothing_counted() -> None:
    assert (Histogram().quantile(0.5), Histogram().mean(), len(Histogram()), Histogram().buckets()) == (0, 0, 0, [])


def test_a_time_that_was_seen_no_time_counts_for_nothing() -> None:
    found = Histogram()
    found.add_one(3.0, 0)
    assert (found.quantile(0.5), found.buckets()) == (0, [])


def test_buckets_keep_three_digits() -> None:
    found = Histogram()
    found.add([7, 999, 1000, 1001, 1009, 123_456])
    assert found.buckets() == [(0.007, 1), (0.999, 1), (1.0, 1), (1.01, 2), (124.0, 1)]


def test_a_batch_that_lingered() -> None:
    found, clock = recorder()
    own = entry([10.0, 12.0])
    found.drain(own, batch(), starved=False)
    clock.move_to(18.0)
    found.finish(own, GOOD)
    found.end(0)
    assert found.causes == {"linger": 1}
    assert (found.closing.quantile(0), found.closing.quantile(1)) == (3, 5)
    assert (found.waiting.quantile(1), found.flight.quantile(0)) == (0, 3)
    assert (found.from_due.quantile(0), found.from_due.quantile(1)) == (6, 8)
    assert (found.batch_bytes, found.nodes[2].batches, found.nodes[2].records) == (200, 1, 2)


def test_a_batch_that_waited_for_its_node_takes_records_meanwhile() -> None:
    found, clock = recorder()
    own = entry([10.0, 30.0])
    found.drain(own, batch(drained=40.0), starved=False)
    clock.move_to(41.0)
    found.finish(own, GOOD)
    assert (found.closing.quantile(0), found.closing.quantile(1)) == (0, 5)
    assert (found.waiting.quantile(0), found.waiting.quantile(1)) == (10, 25)


@pytest.mark.parametrize(
    ("facts", "starved", "cause"),
    [
        ({"drained": 15.0}, False, "linger"),
        ({"drained": 14.0}, False, "along"),
        ({"drained": 14.0}, True, "memory"),
        ({"sparse": False, "records": SimpleNamespace(payload_size=900, raw_size=900)}, False, "full"),
        ({"sparse": False}, False, "next"),
    ],
)
def test_why_a_batch_was_closed(facts: dict[str, Any], starved: bool, cause: str) -> None:
    found, _clock = recorder()
    found.drain(entry([10.0, 11.0]), batch(**facts), starved=starved)
    assert found.causes == {cause: 1}


def test_a_full_batch_is_closed_when_the_next_one_begins() -> None:
    found, clock = recorder()
    own = entry([10.0, 11.0])
    own.closed_at = 12.0
    found.drain(own, batch(sparse=False, drained=20.0), starved=False)
    clock.move_to(21.0)
    found.finish(own, GOOD)
    assert (found.closing.quantile(1), found.waiting.quantile(1)) == (2, 8)


def test_a_retry_counts_once_and_changes_no_times() -> None:
    found, _clock = recorder()
    own = entry([10.0])
    found.drain(own, batch(), starved=False)
    found.drain(own, batch(attempts=1, drained=90.0), starved=False)
    assert (own.drained, found.retries, found.nodes[2].batches) == (15.0, 1, 1)


def test_a_held_call_is_in_the_latency_from_the_call_and_the_backlog_in_that_from_the_due_time() -> None:
    found, clock = recorder()
    own = entry([10.0, 10.0], [1.0, 10.0])
    own.held = [(0, 4.0)]
    found.hold(4.0)
    found.drain(own, batch(), starved=False)
    clock.move_to(20.0)
    found.finish(own, GOOD)
    found.end(3)
    assert (found.from_due.quantile(1), found.from_call.quantile(1), found.from_call.quantile(0)) == (19, 14, 10)
    assert (found.held.quantile(1), found.held.quantile(0), found.backlog) == (4, 0, 3)


def test_failures_by_their_phase() -> None:
    found, _clock = recorder()
    error = SimpleNamespace(context={"phase": "queued (node 1 not ready: no answer)"}, name="TimeoutError")
    found.finish(entry([1.0, 2.0]), SimpleNamespace(error=error, parts=None))
    found.refuse(SimpleNamespace(context={}, name="MESSAGE_TOO_LARGE"))
    assert (found.failed, found.sent, found.refused) == ({"queued": 2, "MESSAGE_TOO_LARGE": 1}, 3, 1)


def test_parts_of_a_batch_that_was_split_have_outcomes_of_their_own() -> None:
    found, _clock = recorder()
    bad = SimpleNamespace(error=SimpleNamespace(context={}, name="X"), record_count=1)
    good = SimpleNamespace(error=None, record_count=2)
    found.finish(entry([1.0, 2.0, 3.0]), SimpleNamespace(error=bad.error, parts=[bad, good]))
    assert (found.acknowledged, found.failed) == (2, {"X": 1})


def test_memory_over_time() -> None:
    found, clock = recorder()
    for when, used in ((0.0, 5), (1.0, 9), (1.5, 7), (999.9, 3), (2000.0, 4)):
        clock.move_to(when)
        found.use_pool(used, lambda used=used: [(1, used), (-1, 99)])  # type: ignore[misc]
    assert len(found.pool) == POINTS
    assert (found.pool[0], found.pool[1], found.pool[-2], found.pool[-1], found.pool_peak) == (9, 7, 7, 4, 9)
    assert (found.nodes[1].memory, found.nodes[2].memory) == (5, 0)


def test_only_what_happens_while_the_load_comes_counts_for_rates() -> None:
    found, clock = recorder()
    for when in (500.0, 1500.0):
        clock.move_to(when)
        found.wrote(1, 100)
        found.served(1, 100, 2.0, 3.0)
        found.throttled(1, 7)
    node = found.nodes[1]
    assert (node.requests, node.size, node.busy_ms, node.throttled_ms, found.seconds) == (1, 100, 2.0, 14, 1.0)
