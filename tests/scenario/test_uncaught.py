"""What nobody expected in the sender's thread is the cause of whatever waited for it and ran out of time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from forebay.errors import KafkaError, KafkaTimeoutError
from tests.fakes.broker import PRODUCE
from tests.fakes.coordinator import TransactionalWorld
from tests.fakes.waiting import meanwhile
from tests.fakes.world import PumpedThread, World

WORDS = "Uncaught error in the producer's I/O thread: ValueError: broken"


def trip(world: World) -> None:
    """A turn ends so."""
    world.metadata.note_uncaught(ValueError("broken"), world.now)


def late(world: World, call: Callable[[], Any]) -> BaseException:
    """The error of a call that waits while turns end so."""
    outcome = meanwhile(world, call, each=partial(trip, world))
    error = outcome if isinstance(outcome, BaseException) else outcome.exception(0)
    assert isinstance(error, BaseException)
    return error


def full() -> World:
    world = World(batch_size=1000, buffer_memory=2000, max_block_ms=50)
    world.cluster.brokers[0].held.add(PRODUCE)
    for partition in (0, 1):
        world.send(bytes(900), partition=partition)
    return world


def unacknowledged(**config: Any) -> World:
    world = World(**config)
    world.cluster.brokers[0].held.add(PRODUCE)
    world.send()
    world.settle()
    return world


def of_an_expired_record() -> BaseException:
    world = World(linger_ms=60_000, delivery_timeout_ms=65_000)
    world.cluster.brokers[0].held.add(PRODUCE)
    future = world.send()
    world.run(1000, 100)
    trip(world)
    world.run(70_000, 1000)
    error = future.exception(0)
    assert error is not None
    return error


def of_a_close() -> BaseException:
    world = unacknowledged()
    thread = PumpedThread(world)
    join = thread.join

    def tripping(timeout_ms: float) -> bool:
        trip(world)
        return join(timeout_ms)

    thread.join = tripping  # type: ignore[method-assign]
    with pytest.raises(KafkaTimeoutError) as caught:
        world.producer.close(0.1)
    return caught.value


def of_a_transaction() -> BaseException:
    world = TransactionalWorld()
    world.cluster.brokers[0].held.add(PRODUCE)
    world.begin()
    world.send()
    return late(world, lambda: world.producer.commit_transaction(0.1))


CASES: dict[str, Callable[[], BaseException]] = {
    "a record's topic": lambda: late(w := World(max_block_ms=50), lambda: w.producer.send("new", b"v")),
    "partitions_for": lambda: late(w := World(max_block_ms=50), lambda: w.producer.partitions_for("new")),
    "memory": lambda: late(w := full(), lambda: w.send(bytes(900))),
    "flush": lambda: late(w := unacknowledged(), lambda: w.producer.flush(0.1)),
    "a record": of_an_expired_record,
    "close": of_a_close,
    "a transaction": of_a_transaction,
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_cause_of_what_runs_out_of_time(case: str) -> None:
    error = CASES[case]()
    assert isinstance(error, KafkaTimeoutError) and WORDS in str(error)
    assert isinstance(error.__cause__, KafkaError) and error.__cause__.message == WORDS
    assert isinstance(error.__cause__.__cause__, ValueError) and error.__cause__.__cause__.__traceback__ is None


def test_it_is_not_the_cause_of_what_came_later() -> None:
    world = World(max_block_ms=50)
    trip(world)
    world.advance(1)
    error = meanwhile(world, lambda: world.producer.partitions_for("new"))
    assert isinstance(error, KafkaTimeoutError) and "Uncaught" not in str(error)


def test_a_turn_and_a_completed_request_that_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def broken(*arguments: Any) -> Any:
        raise ValueError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(world.selector, "turn", broken)
        world.parts.thread._turn()
    found = world.metadata.uncaught_since(world.now)
    assert found is not None and found.message == WORDS
    world.advance(1)
    assert world.metadata.uncaught_since(world.now) is None
    with monkeypatch.context() as patch:
        patch.setattr(world.metadata, "update", broken)
        world.metadata.request_update(True)
        world.run(300)
    found = world.metadata.uncaught_since(world.now - 400)
    assert found is not None and found.message == WORDS
