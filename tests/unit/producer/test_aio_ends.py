"""The end of a producer for asyncio, and what is cancelled or not on asyncio at all."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from forebay.compat.aiokafka import AIOKafkaProducer
from forebay.errors import IllegalArgumentError, KafkaError, KafkaTimeoutError, ProducerClosedError
from tests.fakes.broker import PRODUCE
from tests.fakes.loop import drive
from tests.fakes.world import PumpedThread, World
from tests.support.pace import HANG_S
from tests.unit.producer.test_aio import ours, small


async def cancelled(call: Coroutine[Any, Any, Any]) -> None:
    """Gives a call up that waits, as ``asyncio.wait_for`` does."""
    task = asyncio.ensure_future(call)
    for _ in range(50):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class LastingThread(PumpedThread):
    """It does not end as long as a broker is away."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.tickets: list[Any] = []

    def subscribe(self, ticket: Any) -> bool:
        self.tickets.append(ticket)
        return False

    def unsubscribe(self, ticket: Any) -> None:
        self.tickets.remove(ticket)


async def leave_a_block(world: World) -> None:
    async with ours(world):
        pass


async def leave_a_block_of_aiokafka(world: World) -> None:
    producer = AIOKafkaProducer._around(world.producer)
    try:
        pass
    finally:
        await producer.__aexit__(None, None, None)


ENDS: dict[str, Callable[[World], Coroutine[Any, Any, None]]] = {
    "close": lambda world: ours(world).close(),
    "close with a longer limit": lambda world: ours(world).close(60),
    "async with": leave_a_block,
    "aiokafka, stop": lambda world: AIOKafkaProducer._around(world.producer).stop(),
    "aiokafka, async with": leave_a_block_of_aiokafka,
}


@pytest.mark.parametrize("name", ENDS)
def test_an_end_that_is_cancelled_is_left(name: str) -> None:
    """No thread of the loop's pool waits for it (``ManualLoop.run_in_executor``)."""
    world = World()
    world.cluster.brokers[0].held.add(PRODUCE)
    future = world.send()
    thread = LastingThread(world)
    begun = world.now

    async def main() -> None:
        await cancelled(ENDS[name](world))

    drive(world, main)
    assert world.now - begun < 100 and not thread.finished
    assert thread.tickets == [] and world.sender.closing and not world.sender.forced
    with pytest.raises(ProducerClosedError):
        world.send()
    world.cluster.brokers[0].held.clear()
    world.advance(6000)
    assert thread.join(math.inf) and future.exception(0) is None


@pytest.mark.parametrize(("call", "arguments"), [("close", ()), ("flush", ()), ("partitions_for", ("test",))])
def test_negative_time_limits(call: str, arguments: tuple[str, ...]) -> None:
    world = World()
    with pytest.raises(IllegalArgumentError, match="The timeout cannot be negative: -1"):
        drive(world, lambda: getattr(ours(world), call)(*arguments, timeout=-1))
    assert world.send() is not None


@pytest.mark.parametrize("stuck", [False, True])
def test_a_close_with_a_limit_ends_by_force(stuck: bool) -> None:
    world = World()
    world.cluster.brokers[0].held.add(PRODUCE)
    future = world.send()
    thread = LastingThread(world)
    thread.stuck = stuck

    async def main() -> None:
        async with ours(world) as producer:
            with pytest.raises(KafkaTimeoutError, match=r"1 record\(s\) were not acknowledged within 0.05 s"):
                await producer.close(0.05)

    drive(world, main)
    assert isinstance(future.exception(0), KafkaError) and thread.finished is not stuck


def test_what_the_block_raised_comes_first(caplog: pytest.LogCaptureFixture) -> None:
    class Bad:
        def serialize(self, topic: str, headers: Any, data: Any) -> bytes | None:
            return None

        def close(self) -> None:
            raise ValueError("bad")

    async def leave(world: World, error: Exception | None) -> None:
        async with ours(world):
            if error is not None:
                raise error

    for error, kind in ((None, KafkaError), (OSError("own"), OSError)):
        world = World(value_serializer=Bad())
        PumpedThread(world)
        with pytest.raises(kind):
            asyncio.run(leave(world, error))
    assert "While closing a producer" in caplog.text


def test_a_table_whose_call_is_cancelled_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    world = small(max_block_ms=60_000)
    before = set(threading.enumerate())

    async def main() -> None:
        call = ours(world).send_batch("test", {"value": [bytes(900)] * 3}, partition=0)
        await cancelled(call)

    drive(world, main)
    (own,) = set(threading.enumerate()) - before
    assert own.name == "forebay-send-batch" and own.daemon
    world.producer._set_state(1)
    world.accumulator.close()
    own.join(HANG_S)
    assert not own.is_alive()
    (line,) = caplog.messages
    assert line.startswith("A call on thread forebay-send-batch, whose await was cancelled, raised ProducerClosedError")


def under_trio(call: Coroutine[Any, Any, Any]) -> None:
    """The first step of a coroutine that no asyncio loop runs."""
    try:
        with pytest.raises(RuntimeError, match=r"Under trio use KafkaProducer: .* trio.to_thread.run_sync"):
            call.send(None)
    finally:
        call.close()


async def awaiting(what: Any) -> Any:
    return await what


def test_without_a_loop_of_asyncio_each_wait_says_what_is_supported() -> None:
    """Each coroutine of the producer, and the futures of any."""
    world = World(known=False)
    producer = ours(world)
    given: dict[str, Any] = {
        "send": ("test", b"v"),
        "send_and_wait": ("test", b"v"),
        "send_batch": ("test", [b"v"]),
        "partitions_for": ("test",),
        "purge": (),
        "close": (),
        "flush": (),
        "__aenter__": (),
    }
    for name, arguments in given.items():
        under_trio(getattr(producer, name)(*arguments))
    known = World()
    under_trio(awaiting(known.send()))
    under_trio(awaiting(known.producer.send_batch("test", [b"v"])))
