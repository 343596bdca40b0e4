from __future__ import annotations

import pytest

from forebay.errors import KafkaTimeoutError

from .world import World


def test_idle_connections_close_one_a_turn() -> None:
    world = World(2, connections_max_idle_ms=5000)
    world.until_ready(world.node(1))
    world.clock.advance(10)
    world.until_ready(world.node(2))
    world.settle()
    requested = world.metadata.update_requested
    before = world.client.states.established_count()
    world.clock.advance(5100)
    world.poll()
    assert world.client.states.established_count() == before - 1
    world.poll()
    assert world.client.states.established_count() == before - 2
    assert (requested, world.metadata.update_requested) == (False, False)
    assert world.client.states.connection_delay(world.node(1).id, world.now) == 0


def test_a_connection_in_use_is_not_idle() -> None:
    world = World(connections_max_idle_ms=500)
    world.until_ready()
    sent = world.send(timeout_ms=2000)
    world.poll()
    world.clock.advance(1000)
    world.poll()
    assert sent.responses == []
    assert world.client.in_flight_count(1) == 1


@pytest.mark.parametrize("timeout_ms", [6000, 1000])
def test_request_timeout(timeout_ms: float) -> None:
    """M testRequestTimeout, testDefaultRequestTimeout: strictly later, the connection goes, metadata is asked for."""
    world = World()
    world.until_ready()
    before = world.metadata.update_requested
    sent = world.send(timeout_ms=timeout_ms)
    world.poll()
    world.clock.advance(timeout_ms)
    world.poll()
    assert sent.responses == []
    world.clock.advance(1)
    world.poll()
    assert sent.response.disconnected
    assert sent.response.timed_out
    assert isinstance(sent.response.error, KafkaTimeoutError)
    assert f"within {timeout_ms} ms" in str(sent.response.error)
    assert (before, world.metadata.update_requested) == (False, True)
    assert not world.broker().links[-1].open


def test_wait_ends_at_the_request_timeout() -> None:
    world = World()
    world.until_ready()
    sent = world.send(timeout_ms=700)
    began = world.now
    for _ in range(5):
        if not sent.responses:
            world.poll(60_000)
    assert sent.response.timed_out
    assert 700 <= world.now - began < 702


def test_connection_setup_timeout() -> None:
    """M testConnectionSetupTimeout: both attempts fail after their time, not before."""
    world = World(2, random=0.999)
    for node_id in (1, 2):
        world.selector.swallow(world.cluster.address(node_id))
        assert not world.client.ready(world.node(node_id), world.now)
    world.clock.advance(5000)
    world.poll()
    assert not world.client.states.failed(world.node(1).id)
    world.clock.advance(1001)
    world.poll()
    assert world.client.states.failed(world.node(1).id)
    assert world.client.states.failed(world.node(2).id)


def test_not_stuck_when_the_channel_never_opens() -> None:
    """M testConnectionDoesNotRemainStuckInCheckingApiVersionsStateIfChannelNeverBecomesReady: the same bound."""
    world = World(random=0.999)
    world.selector.swallow(world.cluster.address(1))
    world.client.ready(world.node(), world.now)
    for _ in range(3):
        world.poll()
    assert not world.client.states.failed(world.node().id)
    world.clock.advance(5000 * 1.2 + 1)
    world.poll()
    assert world.client.states.failed(world.node().id)
