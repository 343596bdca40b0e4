"""A broker that starts again knows the last batch of each producer alone: what else is in the log, it cannot say.

Kafka's snapshot of what a log knows of producers holds one batch of each, and after a start there is no more.  So a
batch whose answer was lost is OUT_OF_ORDER_SEQUENCE_NUMBER to it if it has the batch, and if it misses one before it.
"""

from __future__ import annotations

from typing import Any

import pytest

from forebay.errors import KafkaTimeoutError, OutOfOrderSequenceError
from tests.fakes.answers import held, hold, lose_answers, reply
from tests.fakes.produce import Answer
from tests.fakes.world import World

REQUEST_TIMED_OUT, MESSAGE_TOO_LARGE, NOT_ENOUGH, OUT_OF_ORDER, INVALID_RECORD = 7, 10, 19, 45, 87


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
    assert isinstance(first.exception(0), (OutOfOrderSequenceError, KafkaTimeoutError))


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


def test_a_refusal_behind_the_last_in_the_log_writes_nothing_twice() -> None:
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


def test_a_refusal_in_turn_keeps_the_order() -> None:
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


def test_a_split_in_turn_does_not_stop_the_partition() -> None:
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


def test_a_turned_batch_expires_in_its_time() -> None:
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
    assert isinstance(first.exception(0), KafkaTimeoutError)


def test_a_log_that_forgot_the_producer_and_took_the_second() -> None:
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
    taken = world.cluster.take(held(world)[1])
    reply(world, (0, Answer(NOT_ENOUGH)))
    reply(world, (0, taken["test", 0]))
    world.settle(3)
    assert second.done()
    world.cluster.brokers[0].held.clear()
    world.run(6100)
    assert world.values() == [b"0", b"2"]
    assert first.exception(0) is not None, "acknowledged, and nobody has it"


def test_another_leader_in_the_middle_of_asking() -> None:
    """The old leader has 1, 2 and 3 and knows 3; the new one has 1 alone, the others were not replicated yet."""
    world = World(idempotent=True, nodes=2)
    world.send(b"0")
    world.settle()
    futures = send_each(world, b"1", b"2", b"3")
    lose_answers(world, 3)
    hold(world)
    for _ in range(2):
        world.until(lambda: len(held(world)) == 1)
        reply(world, (0, Answer(OUT_OF_ORDER)))
        world.settle(1)
    log = world.cluster.logs["test", 0]
    del log.batches[2:]
    log.end = 2
    next(iter(log.producers.values())).batches.clear()
    next(iter(log.producers.values())).batches.append((1, 1, 1))
    world.cluster.move("test", 0, 1)
    world.metadata.request_update(False)
    world.cluster.brokers[0].waiting.clear()
    world.cluster.brokers[0].drop()
    world.run(4000)
    assert world.values() == [b"0", b"1", b"2", b"3"]
    assert [future.exception(0) for future in futures] == [None] * 3
