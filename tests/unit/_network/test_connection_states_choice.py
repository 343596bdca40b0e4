from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from forebay.model import Node

from .world import World


def throttled(ms: int) -> Callable[[int, bytes], object]:
    return lambda version, payload: SimpleNamespace(throttle_time_ms=ms)


def test_least_loaded_node() -> None:
    """M testLeastLoadedNode: connecting, then ready, then none after the broker hung up."""
    world = World(bootstrap=[Node(1, "127.0.0.1", 9001)])
    world.selector.connect_ms = 5
    world.client.ready(world.node(), world.now)
    assert world.client.least_loaded_node(world.now) == world.node()
    world.poll(5)
    world.until_ready()
    assert world.client.pick(world.now) == (world.node(), True)
    world.cluster.down(1)
    world.poll()
    assert not world.client.is_ready(world.node(), world.now)
    assert world.client.pick(world.now) == (None, False)


def test_has_node_available_or_connection_ready() -> None:
    """M testHasNodeAvailableOrConnectionReady: a full connection is no choice, but there is one."""
    world = World(max_in_flight=1)
    world.until_ready()
    world.send()
    assert world.client.pick(world.now) == (None, True)


def test_least_loaded_node_passes_over_throttled() -> None:
    """M testLeastLoadedNodeConsidersThrottledConnections: none."""
    world = World()
    world.echo()
    world.until_ready()
    world.send(parse=throttled(1000))
    world.settle()
    assert world.client.least_loaded_node(world.now) is None


def test_least_loaded_node_prefers_the_longest_untried() -> None:
    """M testLeastLoadedNodeProvideDisconnectedNodesPrioritizedByLastConnectionTimestamp: every round has all three."""
    world = World(
        3,
        bootstrap=[Node(n, "127.0.0.1", 9000 + n) for n in (1, 2, 3)],
        reconnect_backoff_ms=0,
        reconnect_backoff_max_ms=0,
    )
    for node_id in (1, 2, 3):
        world.cluster.down(node_id)
    picked = []
    for _ in range(30):
        node = world.client.least_loaded_node(world.now)
        assert node is not None
        picked.append(node.id)
        world.client.connect(node, world.now)
        world.clock.advance(1)
        world.client.disconnect(node.id, world.now)
    for begin in range(0, 30, 3):
        assert set(picked[begin : begin + 3]) == {1, 2, 3}
