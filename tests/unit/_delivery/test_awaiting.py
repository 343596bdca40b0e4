"""Futures that coroutines await, and the same outcome as a ``concurrent.futures.Future``."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from forebay._delivery import awaiting
from forebay._delivery.future import RecordFuture
from forebay.errors import KafkaError, TopicAuthorizationError
from forebay.model import RecordMetadata
from tests.fakes.broker import PRODUCE
from tests.fakes.loop import drive
from tests.fakes.world import World
from tests.support.pace import HANG_S

FORBIDDEN = 29


async def outcome(sent: RecordFuture) -> RecordMetadata:
    return await sent


def test_an_acknowledged_record() -> None:
    world = World()
    sent = world.send(b"a")
    assert not sent.done()
    assert drive(world, lambda: outcome(sent)).offset == 0
    assert drive(world, lambda: outcome(sent)).offset == 0  # done before the await


def test_a_record_that_failed_raises_a_copy_each_time() -> None:
    world = World()
    world.cluster.fail("test", 0, FORBIDDEN)
    sent = world.send(b"a")
    raised = []
    for _ in range(2):
        with pytest.raises(TopicAuthorizationError) as caught:
            drive(world, lambda: outcome(sent))
        raised.append(caught.value)
    assert raised[0] is not raised[1]


def test_many_coroutines_await_records_of_one_batch() -> None:
    world = World(linger_ms=5)
    sent = [world.send(b"%d" % number) for number in range(50)]

    async def main() -> list[int]:
        return [metadata.offset for metadata in await asyncio.gather(*map(outcome, [*sent, *sent]))]

    assert drive(world, main) == [*range(50), *range(50)]


def test_a_cancelled_await_leaves_the_record_alone() -> None:
    world = World()
    world.cluster.brokers[0].held.add(PRODUCE)
    sent = world.send(b"a")

    async def main() -> int:
        waiting = asyncio.ensure_future(outcome(sent))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not sent.done()
        world.cluster.brokers[0].release()
        return (await sent).offset

    assert drive(world, main) == 0
    assert world.values() == [b"a"]


def test_a_table_is_awaited_whole() -> None:
    world = World()
    delivery = world.producer.send_batch("test", {"value": [b"a", b"b", b"c"]}, partition=1)

    async def main() -> int:
        found = await delivery
        assert found == await delivery
        return sum(run.records for runs in found.values() for run in runs)

    assert drive(world, main) == 3


def test_a_table_whose_rows_failed() -> None:
    world = World()
    world.cluster.fail("test", 0, FORBIDDEN)
    delivery = world.producer.send_batch("test", {"value": [b"a"]}, partition=0)

    async def main() -> None:
        await delivery

    with pytest.raises(TopicAuthorizationError):
        drive(world, main)


def test_as_a_future_of_the_standard_library() -> None:
    world = World()
    good, delivery = world.send(b"a").as_concurrent(), world.producer.send_batch("test", {"value": [b"b"]})
    assert isinstance(good, concurrent.futures.Future) and not good.cancel()
    world.settle()
    both: list[concurrent.futures.Future[Any]] = [good, delivery.as_concurrent()]
    assert concurrent.futures.wait(both, timeout=0).not_done == set()
    assert good.result(0).offset == 0
    world.cluster.fail("test", 0, FORBIDDEN)
    bad = world.send(b"c").as_concurrent()
    world.settle()
    assert isinstance(bad.exception(0), KafkaError)


@contextlib.contextmanager
def held(future: concurrent.futures.Future[Any]) -> Iterator[threading.Event]:
    """Another thread has the future's lock, until the event is set or the block ends.

    As where a signal handler has interrupted ``result()`` and waits for the sender.
    """
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        with future._condition:
            locked.set()
            release.wait(HANG_S)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert locked.wait(HANG_S)
    try:
        yield release
    finally:
        release.set()
        holder.join(HANG_S)


def test_the_sender_does_not_wait_for_the_lock_of_such_a_future() -> None:
    world = World()
    found = world.send(b"a").as_concurrent()
    with held(found):
        world.settle()
        assert not world.accumulator.has_incomplete()
    assert found.result(HANG_S).offset == 0


def test_where_no_thread_can_be_started_it_waits_for_that_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as while the interpreter exits: the outcome must not be lost."""
    world = World()
    found = world.send(b"a").as_concurrent()
    with held(found) as release:

        def refuse(*_: object) -> None:
            release.set()
            raise RuntimeError("can't create new thread at interpreter shutdown")

        monkeypatch.setattr(awaiting, "run_apart", refuse)
        world.settle()
        assert found.result(0).offset == 0


@pytest.mark.parametrize("late", [False, True], ids=["added before", "added after"])
def test_callbacks_of_such_a_future_run_once_without_its_lock(late: bool) -> None:
    world = World()
    found = world.send(b"a").as_concurrent()
    free: list[bool] = []

    def look(done: concurrent.futures.Future[Any]) -> None:
        def try_lock() -> None:
            free.append(done._condition.acquire(blocking=False))

        other = threading.Thread(target=try_lock)
        other.start()
        other.join(HANG_S)

    if not late:
        found.add_done_callback(look)
    world.settle()
    if late:
        found.add_done_callback(look)
    assert free == [True]
