"""Review: what goes wrong while the batches in flight are asked for in turn."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.errors import TimeoutError
from tests.fakes.answers import held, hold, reply
from tests.fakes.produce import Answer
from tests.fakes.world import World
from tests.scenario.test_forgetful_broker import confirmed, lose_answers, send_each

NOT_LEADER, REQUEST_TIMED_OUT, MESSAGE_TOO_LARGE, NOT_ENOUGH, OUT_OF_ORDER, INVALID_RECORD = 6, 7, 10, 19, 45, 87


def ask(world: World) -> Any:
    world.until(lambda: len(held(world)) == 1)
    return held(world)[0]


def test_f1_a_refusal_behind_the_last_in_the_log_writes_nothing_twice() -> None:
    """1 and 2 are in the log, 3 is not and is refused for good when its turn comes."""
    world = confirmed()
    futures = send_each(world, b"1", b"2", b"3")
    for request in held(world)[:2]:
        world.cluster.take(request)
    reply(world, (0, Answer(REQUEST_TIMED_OUT)))
    reply(world, (0, Answer(REQUEST_TIMED_OUT)))
    reply(world, (0, Answer(NOT_ENOUGH)))
    world.cluster.logs["test", 0].restart()
    world.cluster.brokers[0].held.clear()
    # The broker knows 2; 1 is out of order, 2 a duplicate, and 3 has an invalid record, say.
    world.cluster.fail("test", 0, 0, 0, INVALID_RECORD)
    world.run(4000)
    assert futures[2].exception(0) is not None
    assert world.values() == [b"0", b"1", b"2"]


def test_f1_a_refusal_in_turn_keeps_the_order() -> None:
    """None of them is in the log; the second is refused for good when its turn comes."""
    world = confirmed()
    futures = send_each(world, b"1", b"2", b"3", b"4")
    for _ in futures:
        reply(world, (0, Answer(NOT_ENOUGH)))
    world.cluster.brokers[0].held.clear()
    world.cluster.fail("test", 0, OUT_OF_ORDER, INVALID_RECORD, OUT_OF_ORDER, OUT_OF_ORDER, OUT_OF_ORDER)
    world.run(4000)
    assert futures[1].exception(0) is not None
    assert world.values() == [b"0", b"1", b"3", b"4"]


def test_f2_a_split_in_turn_does_not_stop_the_partition() -> None:
    world = World(idempotent=True, batch_size=1000, linger_ms=5)
    world.send(b"0")
    world.run(20)
    hold(world)
    first = world.send(b"1")
    world.run(20)
    more = [world.send(b"%d" % number + bytes(200)) for number in range(2, 6)]
    world.run(20)
    assert len(held(world)) == 2
    reply(world, (0, Answer(NOT_ENOUGH)))
    reply(world, (0, Answer(NOT_ENOUGH)))
    world.cluster.max_batch_size = 300
    # As a log that lost 0.
    log = world.cluster.logs["test", 0]
    known = log.producers[next(iter(log.producers))]
    known.batches[-1] = (77, 77, 0)
    world.cluster.brokers[0].held.clear()
    world.run(4000)
    assert [future.exception(0) for future in (first, *more)] == [None] * 5


def test_f3_a_turned_batch_expires_in_its_time() -> None:
    """The first was sent before the others and stands behind them in the queue while no leader can be reached."""
    world = confirmed(delivery_timeout_ms=6000)
    hold(world)
    first = world.send(b"1")
    world.settle(2)
    world.run(3000)
    second = world.send(b"2")
    world.settle(2)
    assert len(held(world)) == 2
    reply(world, (0, Answer(NOT_ENOUGH)))
    reply(world, (0, Answer(NOT_ENOUGH)))
    world.until(lambda: len(held(world)) == 1)
    reply(world, (0, Answer(OUT_OF_ORDER)))
    world.settle(1)
    # 1 is out of order and turned behind 2; now the leader goes away.
    broker = world.cluster.brokers[0]
    world.cluster.move("test", 0, 99)
    world.metadata.request_update(False)
    broker.drop()
    world.run(3300)
    assert second.done() is False
    assert first.done(), "its delivery timeout of 6 s is over"
    assert isinstance(first.exception(0), TimeoutError)


def test_f4_a_log_that_forgot_the_producer_and_took_the_second() -> None:
    """1 was never written: its connection broke; then it was put off and 2 taken by a log that knows no producer."""
    world = confirmed(delivery_timeout_ms=6000)
    hold(world)
    first = world.send(b"1")
    world.settle(2)
    broker = world.cluster.brokers[0]
    broker.waiting.clear()
    broker.drop()  # nothing of it was processed
    world.cluster.logs["test", 0].producers.clear()  # producer.id.expiration.ms, or an unclean leader
    world.until(lambda: len(held(world)) == 1)
    second = world.send(b"2")
    world.settle(4)
    assert len(held(world)) == 2, "the second goes along with the first one's retry"
    one, two = held(world)
    taken = world.cluster.take(two)
    reply(world, (0, Answer(NOT_ENOUGH)))
    reply(world, (0, taken["test", 0]))
    world.settle(3)
    assert second.done()
    world.cluster.brokers[0].held.clear()
    world.run(6100)
    assert world.values() == [b"0", b"2"]
    assert first.exception(0) is not None, "acknowledged, and nobody has it"


def test_f6_not_leader_after_the_append() -> None:
    """The leader wrote 1 and 2 and then was leader no more (DelayedProduce, case B); the new one started again."""
    world = confirmed(delivery_timeout_ms=6000)
    first, second = send_each(world, b"1", b"2")
    for request in held(world):
        world.cluster.take(request)
    reply(world, (0, Answer(NOT_LEADER)))
    reply(world, (0, Answer(NOT_LEADER)))
    world.cluster.logs["test", 0].restart()
    world.cluster.brokers[0].held.clear()
    world.run(4000)
    assert world.values() == [b"0", b"1", b"2"]
    assert second.done()
    assert first.done() and first.exception(0) is None
