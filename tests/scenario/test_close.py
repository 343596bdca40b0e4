"""close() and flush() of a whole producer, with the sender's turns taken by whoever waits for it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from forebay._delivery.future import RecordFuture
from forebay.errors import ClusterAuthorizationError, KafkaError, KafkaTimeoutError, ProducerClosedError
from tests.fakes.answers import hold, reply
from tests.fakes.broker import PRODUCE
from tests.fakes.produce import Answer
from tests.fakes.waiting import meanwhile
from tests.fakes.world import PumpedThread, Told, World

CLUSTER_AUTHORIZATION_FAILED = 31
FORCED = "Producer is closed forcefully."


def outcome(future: RecordFuture) -> int | str:
    """A record's offset, or its error, without waiting."""
    error = future.exception(0)
    return future.result(0).offset if error is None else str(error)


def test_close_delivers_what_was_accepted() -> None:
    world = World(linger_ms=4000)
    PumpedThread(world)
    futures = [world.send(partition=number % 2) for number in range(10)]
    world.producer.close()
    assert all(future.result(0).offset >= 0 for future in futures)
    world.producer.close(0)
    with pytest.raises(ProducerClosedError):
        world.send()


def test_close_by_force_counts_what_was_lost() -> None:
    """H shouldCloseProperlyAndThrowIfInterrupted (its limit): futures fail, memory comes back, the count is told."""
    world = World()
    PumpedThread(world)
    hold(world)
    told = Told()
    futures = [world.send(partition=number % 2, on_delivery=told) for number in range(5)]
    world.settle()
    with pytest.raises(KafkaTimeoutError, match=r"close: 5 record\(s\) were not acknowledged within 0.5 s and failed"):
        world.producer.close(0.5)
    assert len(told) == 5
    for future in futures:
        assert "Producer is closed forcefully." in str(future.exception(0))
    assert world.pool.available() == world.pool.total
    world.producer.close()


def test_close_while_a_callback_holds_the_thread() -> None:
    """The thread cannot be ended; the caller is told what has no outcome yet."""
    world = World()
    PumpedThread(world).stuck = True
    hold(world)
    world.send()
    world.settle()
    with pytest.raises(KafkaTimeoutError, match=r"1 record\(s\)"):
        world.producer.close(0.1)


def test_what_is_acknowledged_while_a_callback_holds_the_thread() -> None:
    """The batches of one answer: all of them are acknowledged, though the thread has come to the first alone."""
    world = World(nodes=2, topics={"test": 3})
    world.cluster.brokers[1].held.add(PRODUCE)
    left: list[Any] = []
    seen: list[Any] = []

    def first(report: Any) -> None:
        # As a thread that gives up waiting does, while this callback does not return.
        left.append(world.parts.thread.leave())
        left.append(world.parts.thread.leave())
        seen.extend(outcome(future) for future in futures)

    told = Told()
    futures = [world.send(partition=number % 3, on_delivery=told if number else first) for number in range(6)]
    world.settle()
    assert left == [(4, 2), (4, 2)], "partitions 0 and 2 are in the answer, 1 has none"
    assert seen == [0, FORCED, 0, 1, FORCED, 1]
    world.parts.thread._end()
    assert [outcome(future) for future in futures] == seen
    assert sorted((metadata.offset, str(error)) for metadata, error in told) == sorted(
        [(0, "None"), (1, "None"), (1, "None"), (-1, FORCED), (-1, FORCED)]
    )
    assert world.pool.available() == world.pool.total


def test_an_outcome_that_was_told_stays() -> None:
    """The answer comes after close() gave up: whoever asked for the record in between has heard that it failed."""
    world = World()
    hold(world)
    told = Told()
    future = world.send(on_delivery=told)
    world.settle()
    assert world.parts.thread.leave() == (0, 1)
    assert outcome(future) == FORCED and told == []
    reply(world, (0, Answer()))
    world.settle()
    assert outcome(future) == FORCED
    assert [str(error) for _, error in told] == [FORCED]


@pytest.mark.parametrize("acks", ["0", "1"])
def test_records_without_an_answer_count_as_sent_with_acks_0(acks: str) -> None:
    world = World(acks=acks)
    left: list[Any] = []

    def first(report: Any) -> None:
        left.append(world.parts.thread.leave())

    futures = [world.send(partition=number, on_delivery=first) for number in range(2)]
    world.settle()
    assert left[0] == (2, 0) and [future.exception(0) for future in futures] == [None, None]


def test_close_without_a_broker_ends_with_the_delivery_timeout() -> None:
    world = World(delivery_timeout_ms=6000)
    thread = PumpedThread(world, step=50)
    world.cluster.down(0)
    world.settle()
    future = world.send()
    begun = world.now
    world.producer.close()
    assert isinstance(future.exception(0), KafkaTimeoutError)
    assert thread.finished and 6000 <= world.now - begun < 6500


def test_close_before_there_is_a_producer_id() -> None:
    """H testCloseIsForcedOnPendingInitProducerId, for records: nobody answers, and close(timeout) ends all the same."""
    world = World(idempotent=True)
    world.cluster.brokers[0].script.clear()
    world.parts.client.disconnect(0, world.now)
    PumpedThread(world)
    hold(world)
    future = world.send()
    with pytest.raises(KafkaTimeoutError, match=r"1 record\(s\)"):
        world.producer.close(1)
    assert isinstance(future.exception(0), KafkaError)


def test_flush_waits_for_what_was_there_when_it_began() -> None:
    """O2: others may send meanwhile, and are not waited for."""
    world = World()
    hold(world)
    first = world.send(b"first")
    flushed = threading.Event()

    def flush() -> None:
        world.producer.flush()
        flushed.set()

    thread = threading.Thread(target=flush)
    thread.start()
    while not world.accumulator.flushing():
        thread.join(0.001)
    world.settle(2)
    second = world.send(b"second", partition=1)
    world.settle(2)
    world.cluster.produce(world.cluster.brokers[0].waiting.pop(0))
    while not flushed.is_set():
        world.turn()
        thread.join(0.001)
    thread.join()
    assert first.done() and not second.done()


def sending(world: World, lines: list[list[RecordFuture]]) -> list[threading.Thread]:
    """Threads that each fill a line with the futures of 300 records for a partition of its own."""

    def work(partition: int) -> None:
        for number in range(300):
            lines[partition].append(world.send(b"%d" % number, partition=partition))

    threads = [threading.Thread(target=work, args=(partition,)) for partition in range(len(lines))]
    for thread in threads:
        thread.start()
    return threads


def test_flush_while_threads_send() -> None:
    """Each flush returns, and what was sent before it began has its outcome then."""
    world = World(topics={"test": 3}, batch_size=500, linger_ms=60_000, delivery_timeout_ms=120_000)
    lines: list[list[RecordFuture]] = [[], [], []]
    open_after: list[int] = []
    over = threading.Event()

    def flush() -> None:
        while not over.is_set():
            before = [future for line in lines for future in tuple(line)]
            world.producer.flush()
            open_after.append(sum(not future.done() for future in before))

    threads = sending(world, lines)
    flusher = threading.Thread(target=flush)
    flusher.start()
    while any(thread.is_alive() for thread in threads):
        world.turn()
    over.set()
    while flusher.is_alive():
        world.turn()
    world.producer._thread = PumpedThread(world)  # type: ignore[assignment]
    world.producer.close()
    assert open_after and not any(open_after)
    for partition, line in enumerate(lines):
        assert [future.result(0).offset for future in line] == list(range(300))
        assert world.values(partition=partition) == [b"%d" % number for number in range(300)]
    assert world.pool.available() == world.pool.total


def test_a_fatal_error_while_threads_send() -> None:
    """Whatever they are in the middle of: each record has an outcome, and no memory is missing."""
    world = World(topics={"test": 3}, batch_size=500, idempotent=True)
    lines: list[list[RecordFuture]] = [[], [], []]
    threads = sending(world, lines)
    while not all(len(line) > 100 for line in lines):
        world.turn()
    world.cluster.fail("test", 1, CLUSTER_AUTHORIZATION_FAILED)
    while any(thread.is_alive() for thread in threads):
        world.turn()
    last = world.send(b"last", partition=1)
    world.settle()
    errors = [future.exception(0) for line in lines for future in line]
    assert {type(error) for error in errors if error is not None} <= {ClusterAuthorizationError}
    assert type(last.exception(0)) is ClusterAuthorizationError
    assert not world.accumulator.has_incomplete()
    assert world.pool.available() == world.pool.total
    for partition, line in enumerate(lines):
        good = [b"%d" % number for number, future in enumerate(line) if future.exception(0) is None]
        assert world.values(partition=partition)[: len(good)] == good


def test_flush_gives_up_in_an_orderly_way() -> None:
    """B testAwaitFlushComplete: whatever ended the wait, linger counts again afterwards."""
    world = World(linger_ms=4000)
    hold(world)
    world.send()
    error = meanwhile(world, lambda: world.producer.flush(0.05), step=5)
    assert isinstance(error, KafkaTimeoutError)
    assert not world.accumulator.flushing()
    world.send(partition=1)
    world.settle()
    assert len(world.cluster.requests()) == 1
