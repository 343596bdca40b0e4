"""What NetworkClient measures: the wait and the work of a turn, and the traffic of each node."""

from __future__ import annotations

from typing import Any

from forebay._network.selector import SocketSelector
from forebay._runtime.clock import SystemClock
from tests.fakes.broker import PRODUCE

from .world import World

WAIT, WORK = "io-wait-time-ns-total", "io-time-ns-total"
OUT, IN = "outgoing-byte-total", "incoming-byte-total"


def test_the_wait_and_the_work_of_a_turn_are_timed() -> None:
    world = World()
    world.until_ready()
    world.echo()
    world.broker().held.add(PRODUCE)
    world.send(on_complete=lambda response: world.clock.advance(2))
    world.poll()
    world.selector.call_at(world.now + 5, world.broker().release)
    before, begun = world.metrics.snapshot(world.now), world.now
    assert world.client.poll(60_000, begun) == world.now == begun + 7
    found = world.metrics.snapshot(world.now)
    assert found.value(WAIT) - before.value(WAIT) == 5e6
    assert found.value(WORK) - before.value(WORK) == 2e6


def test_over_sockets_by_the_system_s_clock() -> None:
    clock = SystemClock()
    selector = SocketSelector()
    world = World(clock=clock, selector=selector)
    world.metadata.due_at = float("inf")
    begun = clock.now()
    assert begun + 2 <= world.client.poll(2, begun) <= clock.now()
    world.client.wakeup()
    begun = clock.now()
    assert world.client.poll(10_000, begun) < begun + 5_000
    found = world.metrics.snapshot(clock.now())
    assert 2e6 <= found.value(WAIT) < 5e9
    world.client.close(clock.now())


def test_traffic_is_counted_for_the_node_and_for_all() -> None:
    world = World(2)
    for node_id in (1, 2):
        world.until_ready(world.node(node_id))
        world.echo(node_id, b"0123456789")
    totals = world.metrics.snapshot(world.now)

    def of(node_id: int, found: Any, name: str) -> float:
        return float(found.value(name, group="producer-node-metrics", node_id=f"node-{node_id}"))

    for node_id in (1, 2):
        before = world.metrics.snapshot(world.now)
        sent = world.send(node_id, build=lambda version, size=1000 * node_id: [bytes(size)])
        world.poll()
        world.clock.advance(3 * node_id)
        world.settle()
        answer = sent.response.size
        after = world.metrics.snapshot(world.now)
        for name, least, most in ((OUT, 1000 * node_id, 1000 * node_id + 100), (IN, answer, answer)):
            assert least <= after.value(name) - before.value(name) <= most
            assert of(node_id, after, name) - of(node_id, before, name) == after.value(name) - before.value(name)
        assert of(node_id, after, "request-total") - of(node_id, before, "request-total") == 1
    found = world.metrics.snapshot(world.now)
    assert [found.value(name) - totals.value(name) for name in ("request-total", "response-total")] == [2, 2]


def test_the_latency_is_from_the_request_to_its_answer() -> None:
    world = World()
    world.until_ready()
    world.echo()
    world.broker().held.add(PRODUCE)
    world.send()
    world.poll()
    world.clock.advance(30)
    world.broker().release()
    world.settle()
    found = world.metrics.snapshot(world.now)
    assert found.value("request-latency-max", group="producer-node-metrics", node_id="node-1") == 30
