"""What NetworkClient measures: the wait and the work of a turn, and the traffic of each node."""

from __future__ import annotations

from forebay._network.selector import SocketSelector
from forebay._runtime.clock import SystemClock
from tests.fakes.broker import PRODUCE

from .world import World

WAIT, WORK = "io-wait-time-ns-total", "io-time-ns-total"
OUT, IN = "outgoing-byte-total", "incoming-byte-total"


def value(world: World, name: str, node_id: int | None = None) -> float:
    """One metric now, of a node or of all."""
    found = world.metrics.snapshot(world.now)
    if node_id is None:
        return float(found.value(name))
    return float(found.value(name, group="producer-node-metrics", node_id=f"node-{node_id}"))


def test_the_wait_and_the_work_of_a_turn_are_timed() -> None:
    world = World()
    world.until_ready()
    world.echo()
    world.broker().held.add(PRODUCE)
    world.send(on_complete=lambda response: world.clock.advance(2))
    world.poll()
    world.selector.call_at(world.now + 5, world.broker().release)
    wait, work, begun = value(world, WAIT), value(world, WORK), world.now
    assert world.client.poll(60_000, begun) == world.now == begun + 7
    assert (value(world, WAIT) - wait, value(world, WORK) - work) == (5e6, 2e6)


def test_over_sockets_by_the_system_s_clock() -> None:
    clock = SystemClock()
    world = World(clock=clock, selector=SocketSelector())
    world.metadata.due_at = float("inf")
    begun = clock.now()
    assert begun + 2 <= world.client.poll(2, begun) <= clock.now()
    world.client.wakeup()
    begun = clock.now()
    assert world.client.poll(10_000, begun) < begun + 5_000
    assert 2e6 <= value(world, WAIT) < 5e9
    world.client.close(clock.now())


def test_traffic_is_counted_for_the_node_and_for_all() -> None:
    world = World(2)
    for node_id in (1, 2):
        world.until_ready(world.node(node_id))
        world.echo(node_id, b"0123456789")
    names = (OUT, IN, "request-total", "response-total")
    for node_id in (1, 2):
        before = [(value(world, name), value(world, name, node_id)) for name in names]
        sent = world.send(node_id, build=lambda version, size=1000 * node_id: [bytes(size)])
        world.settle()
        after = [(value(world, name), value(world, name, node_id)) for name in names]
        grown = [(b - a, d - c) for (a, c), (b, d) in zip(before, after, strict=True)]
        assert [of_all for of_all, _ in grown] == [of_node for _, of_node in grown]
        assert 1000 * node_id < grown[0][0] < 1000 * node_id + 100
        assert [of_all for of_all, _ in grown[1:]] == [sent.response.size, 1, 1]


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
    assert value(world, "request-latency-max", 1) == 30
