"""_network.exchange: a turn with the clock read around it, over sockets and over anything else."""

from __future__ import annotations

from typing import Any

import pytest

from forebay._metrics.producer import ProducerMetrics
from forebay._network.exchange import Exchange
from forebay._network.selector import SocketSelector
from forebay._runtime.clock import SystemClock
from forebay.testing.clock import ManualClock


class Waiting:
    """A selector that lets time pass and has news."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock

    def turn(self, timeout_ms: float, now: float) -> list[Any]:
        self.clock.advance(timeout_ms)
        return ["news"]


def test_the_wait_and_the_work_are_timed() -> None:
    clock = ManualClock()
    metrics = ProducerMetrics("me", clock.now())
    exchange = Exchange(Waiting(clock), clock, metrics)  # type: ignore[arg-type]
    begun = clock.now()
    assert exchange.turn(5, begun) == ["news"]
    assert exchange.after == begun + 5
    clock.advance(2)
    assert exchange.end() == begun + 7
    found = metrics.snapshot(clock.now())
    assert (found.value("io-wait-time-ns-total"), found.value("io-time-ns-total")) == (5e6, 2e6)


def test_over_sockets_by_the_system_s_clock() -> None:
    clock = SystemClock()
    selector = SocketSelector()
    exchange = Exchange(selector, clock, ProducerMetrics("me", clock.now()))
    begun = clock.now()
    assert exchange.turn(2, begun) == []
    assert begun + 2 <= exchange.after <= exchange.end() <= clock.now()
    selector.wakeup()
    begun = clock.now()
    assert exchange.turn(10_000, begun) == []
    assert exchange.after < begun + 5_000


@pytest.mark.parametrize("size", [1, 70_000])
def test_what_goes_through_is_counted_for_the_node_and_for_all(size: int) -> None:
    clock = ManualClock()
    metrics = ProducerMetrics("me", clock.now())
    exchange = Exchange(Waiting(clock), clock, metrics)  # type: ignore[arg-type]
    for node in (1, 2):
        exchange.sent(metrics.node(node, clock.now()), size)
        exchange.received(metrics.node(node, clock.now()), size + 1, 3 * node)
    found = metrics.snapshot(clock.now())
    assert (found.value("outgoing-byte-total"), found.value("incoming-byte-total")) == (2 * size, 2 * size + 2)
    assert (found.value("request-total"), found.value("response-total")) == (2, 2)
    for node in (1, 2):
        named = {"group": "producer-node-metrics", "node_id": f"node-{node}"}
        assert found.value("request-latency-max", **named) == 3 * node
        assert found.value("outgoing-byte-total", **named) == size
