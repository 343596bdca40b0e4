"""An outage: what fills and when, when it is over, and the smallest settings that lose nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from forebay._closed_forms.estimate import estimate
from forebay._closed_forms.node import MIB, NodeCost, NodeLoad, Settings
from forebay.errors import IllegalArgumentError
from forebay.tune.outages import Outage, delivery_timeout_for, fitted, memory_for, recovery_of, through

COST = NodeCost(1.0, 0.5, 2.0)
LOAD = NodeLoad(1000, ((1000.0, 1.0),), (1.0,) * 4)
SETTINGS = Settings(5, buffer_memory=4 * MIB)
FOUND = estimate([(LOAD, COST), (LOAD, COST)], SETTINGS)
AWAY = Outage((0,), 10_000, notice_ms=0, election_ms=500)


def test_the_pool_fills_at_the_rate_of_full_batches() -> None:
    found = through(AWAY, FOUND, SETTINGS)
    a_second = 1000 * 16384 / 16
    assert FOUND.nodes[0].pool_record * 1000 == pytest.approx(a_second)
    assert found.fills_in == pytest.approx((4 * MIB - FOUND.pool) / a_second * 1000)
    assert found.held == pytest.approx(10_500 - found.fills_in)
    assert found.memory == pytest.approx(FOUND.pool + 10.5 * a_second)


def test_enough_memory_holds_nobody() -> None:
    found = through(AWAY, FOUND, replace(SETTINGS, buffer_memory=64 * MIB))
    assert math.isinf(found.fills_in)
    assert found.held == 0


def test_recovery_takes_what_the_node_has_to_spare() -> None:
    node = FOUND.nodes[0]
    assert recovery_of(node, 10_000) == pytest.approx(10_000 * 1000 / (node.capacity - 1000))
    slow = estimate([(NodeLoad(1000, ((16_000.0, 1.0),)), NodeCost(1.0, 1.0, per_mib_ms=70.0))], SETTINGS)
    assert math.isinf(recovery_of(slow.nodes[0], 1))


def test_timeouts_leave_time_for_the_outage() -> None:
    assert delivery_timeout_for(FOUND, SETTINGS) == 30_005
    long = replace(AWAY, away_ms=60_000, notice_ms=30_000)
    found = through(long, FOUND, SETTINGS)
    assert found.delivery_timeout == pytest.approx(30_000 + 60_500 + 1000 + found.recovery)
    assert delivery_timeout_for(FOUND, SETTINGS, [AWAY, long]) == found.delivery_timeout


def test_what_follows_by_formula_is_set() -> None:
    long = replace(AWAY, away_ms=120_000)
    made = fitted(FOUND, SETTINGS, [long])
    assert made.buffer_memory >= memory_for(FOUND, SETTINGS, [long])
    assert made.buffer_memory & (made.buffer_memory - 1) == 0
    assert made.delivery_timeout_ms > 120_000 and made.delivery_timeout_ms % 1000 == 0
    assert fitted(FOUND, SETTINGS, least_memory=32 * MIB).buffer_memory == 32 * MIB


def test_an_overload_needs_no_memory_that_can_be_named() -> None:
    load = NodeLoad(100_000, ((16_000.0, 1.0),))
    found = estimate([(load, COST)], SETTINGS)
    assert found.overload
    made = fitted(found, SETTINGS, [Outage((0,), 1000)])
    assert (made.buffer_memory, made.delivery_timeout_ms) == (SETTINGS.buffer_memory, SETTINGS.delivery_timeout_ms)


def test_a_node_that_there_is_not_is_refused() -> None:
    with pytest.raises(IllegalArgumentError, match="there is no node 2: the estimate has 2"):
        through(Outage((2,), 1000), FOUND, SETTINGS)
