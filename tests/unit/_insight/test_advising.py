"""_insight.advising: what is said of made-up metrics, and of a producer that sends."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import pytest

from forebay._closed_forms.node import Settings
from forebay._insight.advising import LEAST_RECORDS, LiveAdvice, Seen, advice_of, advise
from forebay.errors import ForkedProducerError, IllegalArgumentError, ProducerClosedError
from forebay.producer._path import CLOSED, FORKED
from tests.fakes.world import World

MIB = 1 << 20
CALM = Seen(
    records=60_000,
    rate=1000.0,
    record_size=109.0,
    batch_size=700.0,
    ratio=1.0,
    records_request=5.9,
    queue_ms=5.0,
    answer_ms=1.0,
    nodes=((40_000.0, 1.0), (40_000.0, 1.1), (40_000.0, 0.9)),
    partitions=6,
    memory=32 * MIB,
    available=32 * MIB,
    waits=0.0,
    throttled_ms=0.0,
    failed=0.0,
)


def said(seen: Seen = CALM, p99_ms: float | None = None, **settings: Any) -> LiveAdvice:
    return advice_of(seen, Settings(**settings), p99_ms)


def test_the_defaults_are_left_where_nothing_is_better_at_the_same_latency() -> None:
    found = said()
    assert (found.verdict, found.settings) == ("leave", {})
    assert found.reasons == ("No other setting has fewer requests with a p99 of at most 6.6 ms.",)
    present = found.estimated["present"]
    assert 150 < present.requests < 200
    assert 5 < present.p99_ms < 8


def test_a_limit_that_leaves_room_gives_fewer_requests_and_names_the_price() -> None:
    found = said(p99_ms=60)
    assert found.verdict == "change"
    assert found.settings == {"linger.ms": 50}
    (reason,) = found.reasons
    assert reason.startswith("linger.ms 5 ▸ 50: a batch takes ")
    assert "requests" in reason and "p99" in reason
    assert found.estimated["proposed"].requests < 0.5 * found.estimated["present"].requests
    assert found.estimated["proposed"].p99_ms < 60


def test_requests_that_wait_at_a_slow_broker_are_fewer_with_a_lower_latency() -> None:
    slow = CALM._replace(
        batch_size=1000.0, records_request=9.0, answer_ms=45.0, nodes=((120_000.0, 45.0),), partitions=12
    )
    found = said(slow, linger_ms=0.0)
    assert found.verdict == "change"
    before, after = (found.estimated[name] for name in ("present", "proposed"))
    assert after.requests < before.requests
    assert after.p99_ms < 1.1 * before.p99_ms


def test_a_slow_node_is_looked_at_apart() -> None:
    mixed = CALM._replace(nodes=((40_000.0, 1.0), (40_000.0, 1.0), (40_000.0, 60.0)))
    assert said(mixed).estimated["present"].p99_ms > 50 > said().estimated["present"].p99_ms


def test_keyed_records_fill_batches_side_by_side() -> None:
    keyed = CALM._replace(batch_size=250.0, partitions=60)
    assert said(keyed).estimated["present"].records_batch < 0.5 * said().estimated["present"].records_batch


def test_calls_that_wait_for_memory_get_more_of_it() -> None:
    found = said(CALM._replace(waits=0.25, available=0))
    assert found.settings == {"buffer.memory": 64 * MIB}
    assert any(
        "buffer.memory 32 MiB ▸ 64 MiB: calls of send waited for memory in 25 %" in each for each in found.reasons
    )


def test_linger_that_nothing_joins_goes() -> None:
    lone = CALM._replace(rate=190.0, records_request=1.0, batch_size=170.0, queue_ms=5.1)
    found = said(lone)
    assert found.settings == {"linger.ms": 0}
    assert found.reasons[0].startswith("linger.ms 5 ▸ 0: a request takes along 1 records, so each waits 5.1 ms")
    assert said(lone._replace(rate=10.0)).settings == {}
    assert said(lone, linger_ms=0.0).settings == {}
    busy = lone._replace(rate=4e4, record_size=5000.0, batch_size=5000.0, partitions=300, ratio=0.3)
    tight: dict[str, Any] = {
        "compression": "lz4",
        "compression_ratio": 0.3,
        "buffer_memory": MIB // 4,
        "max_request_size": 1 << 16,
    }
    assert "linger.ms" not in said(busy, **tight).settings


def test_metrics_that_the_formulas_do_not_fit_are_told() -> None:
    (reason,) = said(CALM._replace(records_request=2.0)).reasons
    assert reason.startswith("Formulas give 167 requests/s where 500 were measured: records do not come as is assumed")


def test_a_linger_that_the_delivery_timeout_has_no_time_for_is_not_proposed() -> None:
    found = said(p99_ms=60, request_timeout_ms=30_000, delivery_timeout_ms=30_012)
    assert found.settings == {"linger.ms": 10}


def test_batches_that_the_memory_has_no_room_for_are_not_proposed() -> None:
    many = CALM._replace(rate=2e4, record_size=1009.0, batch_size=16_000.0, records_request=200.0, partitions=300)
    assert said(many, p99_ms=500).settings == {"linger.ms": 100, "batch.size": 32_768}
    assert said(many, p99_ms=500, buffer_memory=MIB).settings == {"linger.ms": 20}


def test_a_batch_that_is_as_large_as_a_request_does_not_shrink() -> None:
    found = said(CALM._replace(rate=1e5, batch_size=200_000.0), p99_ms=500, batch_size=4 * MIB, max_request_size=MIB)
    assert "batch.size" not in found.settings


def test_each_setting_is_shown_once() -> None:
    found = said()
    assert list(found.estimated) == ["present", "linger.ms=0", "linger.ms=20", "linger.ms=100"]


def test_pauses_and_failures_are_named() -> None:
    found = said(CALM._replace(throttled_ms=120.0, failed=7.0))
    assert found.verdict == "leave"
    assert found.reasons == (
        "Brokers ask for pauses of 120 ms: a quota is the limit, and not the settings.",
        "7 records failed since the start; the errors say why.",
    )


@pytest.mark.parametrize("few", [CALM._replace(records=LEAST_RECORDS - 1), CALM._replace(rate=0.0)])
def test_too_few_records(few: Seen) -> None:
    found = said(few)
    assert (found.verdict, found.settings, found.estimated) == ("too few", {}, {})
    assert str(found).startswith("Too few records to say anything.\n  ")
    assert "it takes 1,000" in str(found)


def test_the_text_and_the_json_have_all_of_it() -> None:
    found = said(p99_ms=60)
    text = str(found).splitlines()
    assert text[0] == "Set linger.ms=50"
    assert len(text) < 20
    assert any(line.startswith("  linger.ms=20 ") for line in text)
    read = json.loads(found.as_json())
    assert read["settings"] == {"linger.ms": 50}
    assert read["estimated"]["present"]["requests"] == found.estimated["present"].requests


def test_a_producer_that_sends_is_advised_of_its_own_metrics() -> None:
    world = World(linger_ms=5)
    assert world.producer.advise().verdict == "too few"
    for _ in range(300):
        for _ in range(5):
            world.send(bytes(100))
        world.advance(5)
        world.settle()
    found = world.producer.advise()
    assert found.verdict in ("leave", "change")
    assert 800 < found.measured["records/s"] < 1100
    assert found.measured["bytes a record"] == pytest.approx(109, abs=2)
    assert 0.4 * found.measured["requests/s"] < found.estimated["present"].requests < 2 * found.measured["requests/s"]


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), "20", True])
def test_a_limit_that_is_none(limit: Any) -> None:
    with pytest.raises(IllegalArgumentError, match="p99_ms is .*; it must be a number above 0, or None"):
        World().producer.advise(p99_ms=limit)


def test_metrics_without_a_number_are_passed_over() -> None:
    world = World(linger_ms=5)
    for _ in range(300):
        for _ in range(5):
            world.send(bytes(100))
        world.advance(5)
        world.settle()
    parts = world.parts
    read = parts.metrics.snapshot(parts.clock.now())
    known = {"clock": parts.clock, "config": parts.config, "accumulator": parts.accumulator}
    for odd in (math.nan, math.inf):
        given = {name: odd if isinstance(value, float) else value for name, value in read.items()}
        metrics = SimpleNamespace(snapshot=lambda now, given=given: given)
        found = advise(SimpleNamespace(metrics=metrics, **known), None)
        assert (found.verdict, found.settings) == ("too few", {})
        assert math.isfinite(sum(found.measured.values()))


def test_a_closed_producer_has_no_metrics() -> None:
    world = World()
    world.producer._set_state(CLOSED)
    with pytest.raises(ProducerClosedError):
        world.producer.advise()


def test_a_child_of_a_fork_is_told_so() -> None:
    world = World()
    world.producer._set_state(FORKED)
    with pytest.raises(ForkedProducerError):
        world.producer.advise()
