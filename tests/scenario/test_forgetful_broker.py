"""A broker that starts again knows the last batch of each producer alone: what else is in the log, it cannot say.

Kafka's snapshot of what a log knows of producers holds one batch of each, and after a start there is no more.  So a
batch whose answer was lost is OUT_OF_ORDER_SEQUENCE_NUMBER to it if it has the batch, and if it misses one before it.
"""

from __future__ import annotations

from typing import Any

import pytest

from forebay.errors import OutOfOrderSequenceError, TimeoutError
from tests.fakes.answers import held, hold, reply
from tests.fakes.produce import Answer
from tests.fakes.world import World

OUT_OF_ORDER, MESSAGE_TOO_LARGE = 45, 10


def confirmed(**options: Any) -> World:
    """A producer of which the log has a batch."""
    world = World(idempotent=True, **options)
    world.send(b"0")
    world.settle()
    return world


def send_each(world: World, *values: bytes) -> list[Any]:
    """A request for each value, none of them answered."""
    hold(world)
    futures = []
    for value in values:
        futures.append(world.send(value))
        world.settle(2)
    assert len(held(world)) == len(values)
    return futures


def lose_answers(world: World, written: int) -> None:
    """The first ``written`` requests do their work; then the connection and the broker's memory go."""
    for request in held(world)[:written]:
        world.cluster.take(request)
    world.cluster.logs["test", 0].restart()
    broker = world.cluster.brokers[0]
    broker.waiting.clear()
    broker.held.clear()
    broker.drop()


@pytest.mark.parametrize("written", range(5))
def test_what_is_in_the_log_is_not_written_again(written: int) -> None:
    """However many of five were written, each is there once, in order, and acknowledged, under the same epoch."""
    world = confirmed()
    values = [b"1", b"2", b"3", b"4", b"5"]
    futures = send_each(world, *values)
    lose_answers(world, written)
    world.run(4000)
    assert [future.exception(0) for future in futures] == [None] * 5
    assert world.values() == [b"0", *values]
    assert {batch.producer_epoch for batch in world.cluster.logs["test", 0].batches} == {0}
    # Of those that the broker has and does not know it cannot say where.
    forgotten = max(written - 1, 0)
    assert [future.result(0).offset for future in futures] == [-1] * forgotten + list(range(forgotten + 1, 6))


def test_new_batches_wait_until_it_is_known() -> None:
    world = confirmed()
    futures = send_each(world, b"1", b"2", b"3")
    lose_answers(world, 2)
    futures += [world.send(b"4")]
    world.run(4000)
    assert [future.exception(0) for future in futures] == [None] * 4
    assert world.values() == [b"0", b"1", b"2", b"3", b"4"]


def test_a_log_that_lost_what_it_confirmed_gets_the_rest_in_order() -> None:
    """Not one of them is known to the broker, so none is in its log: they follow under the next epoch."""
    world = confirmed()
    futures = send_each(world, b"1", b"2", b"3")
    for _ in futures:
        reply(world, (0, Answer(OUT_OF_ORDER)))
    world.cluster.brokers[0].held.clear()
    world.run(4000)
    assert [future.result(0).offset for future in futures] == [1, 2, 3]
    assert world.values() == [b"0", b"1", b"2", b"3"]
    stamps = [(batch.producer_epoch, batch.base_sequence) for batch in world.cluster.logs["test", 0].batches]
    assert stamps == [(0, 0), (1, 0), (1, 1), (1, 2)]


def test_one_that_never_got_an_unclear_answer_is_not_taken_for_written() -> None:
    """Refused for sure, and a later one confirmed: no producer may say that it was acknowledged."""
    world = confirmed(delivery_timeout_ms=6000)
    first, second = send_each(world, b"1", b"2")
    reply(world, (0, Answer(OUT_OF_ORDER)))
    reply(world, (0, Answer(base_offset=2)))
    world.settle(2)
    assert second.result(0).offset == 2
    world.cluster.fail("test", 0, *[OUT_OF_ORDER] * 10_000)
    world.cluster.brokers[0].held.clear()
    world.run(6100)
    assert isinstance(first.exception(0), (OutOfOrderSequenceError, TimeoutError))


def test_what_stands_before_one_that_was_given_up_is_not_written_again() -> None:
    """The last that the broker has is refused as too large meanwhile and given up: nobody can ask for it any more."""
    world = confirmed(delivery_timeout_ms=6000)
    first, second = send_each(world, b"1", b"2")
    lose_answers(world, 2)
    hold(world)
    world.until(lambda: len(held(world)) == 1)
    reply(world, (0, Answer(OUT_OF_ORDER)))
    world.until(lambda: len(held(world)) == 1)
    reply(world, (0, Answer(MESSAGE_TOO_LARGE)))
    world.settle(2)
    assert second.exception(0) is not None
    world.cluster.brokers[0].held.clear()
    later = world.send(b"3")
    world.run(6100)
    assert first.exception(0) is not None, "it cannot be known"
    world.run(4000)
    assert later.exception(0) is None
    assert world.values() == [b"0", b"1", b"2", b"3"]
