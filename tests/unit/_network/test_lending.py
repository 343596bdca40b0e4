"""What of the network a thread that sends may use: nodes that are ready, for what was sent to them before."""

from __future__ import annotations

from forebay._sender.lending import LentTurn
from tests.fakes.answers import hold
from tests.fakes.world import World


def test_only_the_node_that_is_ready_gets_its_batch() -> None:
    """The other's is left to the sender, who connects to it."""
    world = World(nodes=2)
    for partition in (0, 1):
        world.send(partition=partition)
    world.run(200)
    world.parts.client.disconnect(1, world.now)
    world.selector.lends = False
    for partition in (0, 1):
        world.send(b"next", partition=partition)
    world.selector.lends = True
    before = [len(world.cluster.requests(node)) for node in (0, 1)]
    assert not LentTurn(world.sender).send_ready(world.now)
    assert [len(world.cluster.requests(node)) for node in (0, 1)] == [before[0] + 1, before[1]]
    world.run(500)
    assert world.values(partition=1) == [b"v", b"next"]


def test_a_node_takes_so_many_requests_and_no_more() -> None:
    world = World(max_in_flight_requests_per_connection=2)
    world.send()
    world.run(200)
    world.selector.lends = True
    hold(world)
    turn = LentTurn(world.sender)
    for number in range(3):
        world.send(b"%d" % number)
        turn.send_ready(world.now)
    assert world.in_flight == 2
    assert not turn.send_ready(world.now)


def test_what_the_system_does_not_take_at_once_follows_in_a_turn() -> None:
    world = World()
    world.send()
    world.run(200)
    world.selector.lends = True
    for link in world.selector.links:
        link.stalled = True
    world.selector._woken = False
    world.send(b"next")
    assert world.in_flight == 1 and world.selector._woken
    for link in world.selector.links:
        link.stalled = False
    world.settle()
    assert world.values() == [b"v", b"next"]
