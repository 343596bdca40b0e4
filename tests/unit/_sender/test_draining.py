"""Which batches leave in one turn, and in how many requests."""

from __future__ import annotations

from typing import Any

from tests.fakes.answers import hold
from tests.fakes.produce import batches_of
from tests.fakes.world import Told, World

FULL = bytes(900)
"""One fills a batch of 1,000 bytes."""


def filled(batches: int, **config: Any) -> World:
    """A world whose partition 0 has so many batches waiting, and whose broker does not answer."""
    world = World(batch_size=1000, **config)
    hold(world)
    for number in range(batches):
        world.send(b"%03d" % number + FULL)
    return world


def sent(world: World) -> list[int]:
    """How many batches each request had."""
    return [len(batches_of(request)) for request in world.cluster.requests()]


def test_one_turn_sends_as_many_requests_as_the_node_takes() -> None:
    world = filled(7)
    world.turn()
    assert world.in_flight == 5
    world.settle()
    assert (sent(world), len(world.queue().batches)) == ([1] * 5, 2)


def test_they_are_in_the_order_of_the_records() -> None:
    world = World(batch_size=1000, idempotent=True)
    for number in range(9):
        world.send(b"%03d" % number + FULL)
    world.settle(20)
    assert [value[:3] for value in world.values() if value is not None] == [b"%03d" % number for number in range(9)]


def test_as_many_bytes_as_one_request_may_have_are_enough_for_a_turn() -> None:
    # The third goes over it: what is left is not known to be too little before it is taken.
    world = filled(5, max_request_size=2000)
    world.turn()
    assert world.in_flight == 3
    world.settle()
    assert world.in_flight == 5


def test_what_did_not_fit_gets_a_whole_request() -> None:
    world = World(topics={"test": 50}, batch_size=1000, max_request_size=20_000)
    hold(world)
    for partition in range(50):
        world.send(FULL, partition=partition)
    world.settle()
    assert sent(world) == [20, 20, 10]


def test_without_acknowledgements_each_request_is_done_when_it_is_written() -> None:
    world = World(batch_size=1000, acks=0)
    told = Told()
    for number in range(7):
        world.send(b"%03d" % number + FULL, on_delivery=told)
    world.settle()
    assert ([error for _, error in told], world.in_flight) == ([None] * 7, 0)
    world.run(20_000, step=500)
    assert [value[:3] for value in world.values() if value is not None] == [b"%03d" % number for number in range(7)]


def test_what_lingers_does_not_follow() -> None:
    world = World(topics={"test": 2}, linger_ms=100, batch_size=1000)
    hold(world)
    world.send(FULL)
    world.send(FULL)  # the first is full by it
    world.send(b"small", partition=1)
    world.settle()
    # Java's rule: what lingers goes along with what is due on its node; nothing goes by itself.
    assert sent(world) == [2]
    world.send(b"small", partition=1)
    world.settle()
    assert sent(world) == [2]


def test_one_slot_is_one_request() -> None:
    world = filled(3, max_in_flight_requests_per_connection=1)
    world.settle()
    assert sent(world) == [1]


def test_with_a_codec_the_first_request_does_not_wait_for_the_compression_of_the_second() -> None:
    world = filled(0, compression_type="gzip")
    noise = [bytes((number * 7 + at * at) % 251 for at in range(900)) for number in range(4)]
    for value in noise:
        world.send(value)
    world.turn()
    assert world.in_flight == 1
    world.settle()
    assert world.in_flight > 1


def test_a_node_that_still_has_bytes_to_write_gets_no_more() -> None:
    world = filled(0)
    for link in world.cluster.brokers[0].links:
        link.stalled = True
    world.send(FULL)
    world.settle()
    world.send(FULL)
    world.settle()
    assert world.in_flight == 1
    for link in world.cluster.brokers[0].links:
        link.stalled = False
    world.settle()
    assert world.in_flight == 2


def test_a_node_that_cannot_be_tried_is_not_tried_in_each_turn() -> None:
    """No name is looked up and no time passes: the attempt fails at once, and there is no back-off."""

    def nowhere(host: str, port: int) -> tuple[str, int]:
        if away:
            raise OSError("nowhere")
        return host, port

    away: list[bool] = []
    world = World(
        reconnect_backoff_ms=0, reconnect_backoff_max_ms=0, broker_address_map=nowhere, delivery_timeout_ms=8000
    )
    world.send()
    world.settle()
    away.append(True)
    world.cluster.down(0)
    world.settle()
    world.send()
    turns, end = 0, world.now + 100
    while world.now < end:
        world.wait()
        turns += 1
        assert turns < 500
