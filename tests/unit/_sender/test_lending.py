"""A lent turn: what a thread that sends does in the sender's place, what it leaves, and when it wakes the sender."""

from __future__ import annotations

import gc
import sys
from functools import partial
from typing import Any

import pytest

import forebay
from forebay._sender.lending import LentTurn
from tests.fakes.answers import hold, reply
from tests.fakes.broker import METADATA, PRODUCE
from tests.fakes.produce import Answer, batches_of
from tests.fakes.world import World

# From 3.12 on it runs in interpreted Python alone, and compiled code leaves it on.
INTERPRETED_COLLECTOR = forebay.implementation == "compiled" and sys.version_info >= (3, 12)


def lending(**config: Any) -> World:
    """A world whose turn can be had, after the first record: that one the sender itself has to send."""
    world = World(**config)
    world.send(b"first")
    world.run(200)
    assert world.values() == [b"first"]
    world.selector.lends = True
    world.selector._woken = False
    return world


def requests(world: World) -> int:
    return len(world.cluster.requests())


def due(world: World) -> bool:
    """What a thread does that sees a sender who cannot come."""
    return bool(LentTurn(world.sender).send_ready(world.now))


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_record_is_on_its_way_when_send_returns(idempotent: bool) -> None:
    """Without a turn, and without a word to the sender's thread."""
    world = lending(idempotent=idempotent)
    before = requests(world)
    hold(world)
    future = world.send(b"second")
    assert (requests(world), world.in_flight, world.queue().in_flight) == (before + 1, 1, 1)
    assert not world.selector._woken
    assert not future.done()
    reply(world, (0, Answer(base_offset=1)))
    world.settle(2)
    assert future.result(0).offset == 1
    assert world.pool.available() == world.pool.total


def test_with_a_request_in_flight_the_sender_is_woken() -> None:
    """It gathers what comes until then."""
    world = lending()
    hold(world)
    world.send(b"second")
    world.send(b"third")
    assert world.in_flight == 1 and world.selector._woken


def test_a_turn_that_cannot_be_had_leaves_all_to_the_sender() -> None:
    world = lending()
    world.selector.lends = False
    before = requests(world)
    world.send(b"second")
    assert requests(world) == before and world.selector._woken
    world.settle()
    assert world.values() == [b"first", b"second"]


def test_what_lingers_is_not_sent_and_what_is_due_is() -> None:
    world = lending(linger_ms=5)
    before = requests(world)
    world.send(b"second")
    assert not due(world) and requests(world) == before
    world.advance(5)
    assert due(world) and requests(world) == before + 1


def test_a_topic_of_which_nothing_was_sent_is_left_to_the_sender() -> None:
    """Its sensors are made in interpreted Python, under a lock."""
    world = World(topics={"test": 2, "other": 1})
    world.send(b"first")
    world.run(200)
    world.selector.lends = True
    before = requests(world)
    world.send(b"x", topic="other")
    assert requests(world) == before
    world.settle()
    assert world.values("other") == [b"x"]
    hold(world)
    world.send(b"y", topic="other")
    assert world.in_flight == 1


@pytest.mark.parametrize("config", [{"acks": 0}, {"compression_type": "gzip"}])
def test_what_is_never_lent(config: dict[str, Any]) -> None:
    """Without an answer somebody has to complete the request; a codec gives the GIL up."""
    world = World(**config)
    world.send(b"first")
    world.run(200)
    world.selector.lends = True
    before = requests(world)
    world.send(b"second")
    assert requests(world) == before
    world.settle()
    assert requests(world) == before + 1


def test_a_metadata_request_that_is_due_goes_first() -> None:
    world = lending()
    world.metadata.request_update(False)
    world.advance(1000)
    before = requests(world)
    world.send(b"second")
    assert requests(world) == before and world.selector._woken


def test_a_request_of_another_api_is_followed_by_the_sender() -> None:
    """Which version to use is looked up in interpreted Python."""
    world = lending()
    asked = len(world.cluster.brokers[0].of(METADATA))
    world.metadata.request_update(False)
    world.run(500)
    assert len(world.cluster.brokers[0].of(METADATA)) == asked + 1
    before = requests(world)
    world.send(b"second")
    assert requests(world) == before
    world.settle()
    assert requests(world) == before + 1


def test_a_connection_that_is_gone_is_left_to_the_sender() -> None:
    world = lending()
    world.parts.client.disconnect(0, world.now)
    before = requests(world)
    world.send(b"second")
    assert requests(world) == before and world.selector._woken
    world.run(500)  # the back-off before another connection
    assert world.values() == [b"first", b"second"]


def send_alone(world: World, value: bytes) -> None:
    world.send(value)


def in_the_wait(world: World, *values: bytes) -> float:
    """One turn that waits, with records sent 10 ms apart meanwhile; how long it lasted."""
    begun = world.now
    for number, value in enumerate(values, 1):
        world.selector.call_at(begun + 10 * number, partial(send_alone, world, value))
    world.wait()
    return world.now - begun


def test_the_senders_wait_goes_on_until_the_answer() -> None:
    world = lending()
    world.settle()
    in_the_wait(world, b"second")  # from here on it wakes in time for a request that is not answered
    world.settle()
    assert in_the_wait(world, b"third") == 10  # the answer, which comes at once here
    assert world.selector.turns > 0
    hold(world)
    assert in_the_wait(world, b"fourth") > 10
    assert world.in_flight == 1


def test_a_sender_that_would_wait_too_long_is_woken() -> None:
    """Its wait was reckoned without the request: nobody would notice that no answer comes."""
    world = lending(request_timeout_ms=100, delivery_timeout_ms=400)
    world.run(200)
    hold(world)
    futures: list[Any] = []
    world.selector.call_at(world.now + 10, lambda: futures.append(world.send(b"second")))
    begun = world.now
    world.wait()
    assert (world.now - begun, world.in_flight) == (10, 1)
    while not futures[0].done():
        world.wait()
    assert world.now - begun <= 10 + 400 + 1


@pytest.mark.parametrize("good_writes", [0, 1], ids=["before it is drained", "after"])
def test_what_goes_wrong_is_the_senders(good_writes: int) -> None:
    """send() has taken the record: the sender's thread raises, reports, and goes on."""
    world = lending()
    write_now = world.selector.write_now
    calls: list[int] = []

    def failing(channel: Any, now: float) -> bool:
        calls.append(1)
        if len(calls) > good_writes:
            raise RuntimeError("broken")
        return write_now(channel, now)

    world.selector.write_now = failing  # type: ignore[method-assign]
    future = world.send(b"second")
    assert len(calls) == good_writes + 1 and world.selector._woken
    with pytest.raises(RuntimeError, match="broken"):
        world.turn()
    world.settle()
    assert world.values() == [b"first", b"second"]
    assert future.done()


def test_a_producer_that_closes_lends_nothing() -> None:
    world = lending()
    world.selector.lends = False
    world.send(b"second")
    world.selector.lends = True
    world.sender.request_close()
    assert not due(world)
    world.settle()
    assert world.values() == [b"first", b"second"]


def test_the_collector_is_held_off_and_comes_back() -> None:
    world = lending()
    seen: list[bool] = []
    write_now = world.selector.write_now

    def looking(channel: Any, now: float) -> bool:
        seen.append(gc.isenabled())
        return write_now(channel, now)

    world.selector.write_now = looking  # type: ignore[method-assign]
    world.send(b"second")
    assert len(seen) == 2 and gc.isenabled()
    assert INTERPRETED_COLLECTOR or not any(seen)


def test_batches_and_bytes_are_counted() -> None:
    world = lending()
    sent = world.metric("record-send-total")
    world.send(b"second")
    assert world.metric("record-send-total") == sent + 1
    (request,) = world.cluster.requests()[-1:]
    assert list(batches_of(request)) == [("test", 0)]
    assert request.api_key == PRODUCE


def test_a_topic_that_goes_by_name_is_left_to_the_sender_after_one_that_goes_by_id() -> None:
    """Which version a request comes to, the connection learns in interpreted Python."""
    world = World(topics={"test": 1, "other": 1}, known=False)
    world.cluster.topics["other"].topic_id = None
    world.learn("test", "other")
    for topic in ("other", "test"):
        world.send(topic=topic)
        world.run(200)
    world.selector.lends = True
    world.selector._woken = False
    before = requests(world)
    world.send(b"by name", topic="other")
    assert requests(world) == before and world.selector._woken
    world.settle()
    assert requests(world) == before + 1
    world.send(b"by name again", topic="other")
    assert requests(world) == before + 2
    world.settle()
    world.send(b"by id")
    assert requests(world) == before + 2
    world.settle()
    assert [request.version for request in world.cluster.requests()] == [12, 13, 12, 12, 13]
