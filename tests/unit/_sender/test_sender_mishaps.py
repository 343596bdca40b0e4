"""Errors where none are expected: every record still has its outcome, and nothing waits for ever."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from forebay._delivery.callback_thread import note_sender_thread
from forebay.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from tests.fakes.answers import hold
from tests.fakes.broker import PRODUCE
from tests.fakes.tickets import CountingTicket
from tests.fakes.world import World
from tests.support.pace import HANG_S


class Indescribable(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("no words")


class Refusing(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        raise RuntimeError("a log filter of the user's")


@pytest.fixture
def refusing() -> Iterator[None]:
    logger = logging.getLogger("forebay.sender")
    trouble = Refusing()
    logger.addFilter(trouble)
    yield
    logger.removeFilter(trouble)


def raises(report: Any) -> None:
    raise Indescribable


def test_a_callback_whose_error_has_no_repr_strands_nobody() -> None:
    world = World()
    first = world.send(on_delivery=raises)
    second = world.send(partition=1)
    world.run(100)
    assert (first.result(0).offset, second.result(0).offset) == (0, 0)
    assert world.pool.available() == world.pool.total


@pytest.mark.usefixtures("refusing")
def test_a_log_filter_that_raises_does_not_keep_a_batch_from_its_retry() -> None:
    world = World(max_in_flight_requests_per_connection=1)
    world.cluster.fail("test", 0, 7)
    first, second = world.send(), world.send(partition=1)
    world.run(500)
    assert (first.result(0).offset, second.result(0).offset) == (0, 0)
    assert (world.queue().in_flight, world.queue().muted, len(world.sender.in_flight)) == (0, False, 0)


@pytest.mark.usefixtures("refusing")
def test_a_log_filter_that_raises_does_not_keep_a_batch_from_failing() -> None:
    world = World()
    world.cluster.fail("test", 0, 10)
    future = world.send()
    world.run(500)
    assert isinstance(future.exception(0), KafkaError)
    assert world.pool.available() == world.pool.total


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("in_flight", [True, False])
def test_a_log_filter_that_raises_does_not_keep_others_from_expiring(in_flight: bool) -> None:
    world = World(nodes=3, topics={"test": 3}, delivery_timeout_ms=3000, request_timeout_ms=3000)
    for node in range(3):
        if in_flight:
            world.cluster.brokers[node].held.add(PRODUCE)
        else:
            world.cluster.down(node)
    futures = [world.send(partition=partition) for partition in range(3)]
    world.settle()
    world.advance(2990)
    for _ in range(8):
        with contextlib.suppress(RuntimeError):  # of other lines, about the connections
            world.turn()
    assert not any(future.done() for future in futures)
    world.advance(10)
    world.sender._expire(world.now)
    assert all(isinstance(future.exception(0), KafkaTimeoutError) for future in futures)
    assert not world.accumulator.has_incomplete()


def test_what_was_drained_and_not_sent_goes_back() -> None:
    world = World()
    futures = [world.send(partition=partition) for partition in (0, 1)]
    world.accumulator.schedule.ready(world.now, True)
    nodes = world.accumulator.drain.drain(0, 10_000, world.now, None)
    world.sender.draining.put_back([(0, nodes, False)], world.now)
    assert len(nodes) == 2
    world.run(500)
    assert [future.result(0).offset for future in futures] == [0, 0]
    assert world.pool.available() == world.pool.total


def test_a_forced_end_finds_what_nobody_knows_of() -> None:
    world = World()
    future = world.send()
    with_queue = world.queue()
    world.accumulator.take_waiting()
    assert len(with_queue.batches) == 0
    world.sender.outcomes.fail_all(KafkaError("forced"))
    assert str(future.exception(0)) == "forced"
    assert not world.sender.has_work()


def test_an_end_does_not_sleep_after_the_last_outcome() -> None:
    world = World(delivery_timeout_ms=6000)
    hold(world)
    world.send()
    world.settle(2)
    world.sender.request_close()
    world.advance(6000)
    world.wait()  # the wake-up of request_close
    before = world.now
    world.wait()
    assert not world.sender.has_work()
    assert world.now == before


def test_one_node_s_silence_does_not_keep_memory_at_another() -> None:
    world = World(nodes=2, topics={"a": 1, "b": 2}, linger_ms=3000, batch_size=1000, buffer_memory=2000)
    world.cluster.move("a", 0, 0)
    world.cluster.move("b", 0, 1)
    world.cluster.move("b", 1, 1)
    world.metadata.request_update(True)
    world.run(300)
    world.cluster.brokers[0].held.add(PRODUCE)
    world.send(bytes(900), topic="a")
    world.settle(5)
    lingering = world.send(bytes(600), topic="b")
    world.settle(5)
    assert not lingering.done()
    ticket = CountingTicket()
    world.accumulator.appender.append_bytes(world.accumulator.topics["b"], 1, b"x", now=world.now, ticket=ticket)
    world.settle(8)
    assert ticket.woken > 0
    assert lingering.done()


def test_a_callback_cannot_wait_for_another_record() -> None:
    world = World()
    future = world.send()
    raised: list[IllegalStateError] = []

    def on_a_sender_thread() -> None:
        note_sender_thread()
        try:
            future.result(HANG_S)
        except IllegalStateError as error:
            raised.append(error)

    thread = threading.Thread(target=on_a_sender_thread)
    thread.start()
    thread.join(HANG_S)
    assert len(raised) == 1


def test_ctrl_c_in_a_refused_record_s_callback_gets_through() -> None:
    world = World(max_request_size=1000)

    def interrupted(report: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.send(bytes(5000), on_delivery=interrupted)


def test_each_raise_is_of_a_copy() -> None:
    world = World()
    world.cluster.fail("test", 0, 10)
    future = world.send()
    world.run(100)
    raised = []
    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            future.result(0)
        raised.append(caught.value)
    stored = future.exception(0)
    assert stored is not None
    assert raised[0] is not raised[1] is not stored
    assert stored.__traceback__ is None
