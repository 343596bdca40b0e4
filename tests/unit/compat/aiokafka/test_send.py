"""The future of a message: everything that asyncio does with a future, and what cancelling leaves."""

from __future__ import annotations

import asyncio
import contextvars
import gc
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from forebay.compat.aiokafka import AIOKafkaProducer, errors
from forebay.compat.aiokafka._send import DeliveryFuture
from forebay.compat.aiokafka.structs import RecordMetadata, TopicPartition
from tests.fakes.broker import PRODUCE
from tests.fakes.loop import ManualLoop, drive
from tests.fakes.produce import Answer, answer_produce
from tests.fakes.world import World
from tests.support.pace import HANG_S
from tests.unit._runtime.test_event_loop import PoorLoop

Use = Callable[[AIOKafkaProducer], Coroutine[Any, Any, Any]]


def used(world: World, use: Use, **options: Any) -> Any:
    """What ``use`` gives for a producer on this world's."""

    async def main() -> Any:
        producer = AIOKafkaProducer._around(world.producer, **options)
        try:
            return await use(producer)
        finally:
            producer._closed = True  # the world's producer is never closed

    return drive(world, main)


def frozen(**config: Any) -> World:
    """Its broker does not acknowledge."""
    world = World(**config)
    world.cluster.brokers[0].held.add(PRODUCE)
    return world


def thaw(world: World) -> None:
    world.cluster.brokers[0].held.discard(PRODUCE)
    world.cluster.brokers[0].release()


async def one(producer: AIOKafkaProducer, value: bytes = b"v") -> DeliveryFuture:
    return await producer.send("test", value, partition=1)


def test_what_it_is_before_and_after() -> None:
    world = World()

    async def use(producer: AIOKafkaProducer) -> None:
        future = await producer.send("test", b"v", b"k", partition=1, timestamp_ms=1234)
        assert asyncio.isfuture(future) and future.get_loop() is asyncio.get_running_loop()
        assert not future.done() and not future.cancelled() and "pending" in repr(future)
        for ask in (future.result, future.exception):
            with pytest.raises(asyncio.InvalidStateError):
                ask()
        found = await future
        assert found == RecordMetadata("test", 1, TopicPartition("test", 1), 0, 1234, 0, None)
        assert future.done() and future.result() is found and future.exception() is None
        assert not future.cancel() and await future is found and "offset 0" in repr(future)

    used(world, use)
    with pytest.raises(TypeError, match="send"):
        DeliveryFuture()


def test_a_broker_that_sets_the_time_says_so() -> None:
    world = World()
    answer = {("test", 1): Answer(base_offset=3, log_append_time=99_000)}
    world.cluster.brokers[0].script[PRODUCE] = lambda request: answer_produce(request, answer)

    async def use(producer: AIOKafkaProducer) -> Any:
        return await (await one(producer))

    found = used(world, use)
    assert (found.offset, found.timestamp, found.timestamp_type) == (3, 99_000, 1)


def test_callbacks_get_the_future_itself_once_and_later() -> None:
    world = World()
    kind = contextvars.ContextVar("kind", default="none")
    told: list[Any] = []

    async def use(producer: AIOKafkaProducer) -> None:
        future = await one(producer)
        waiting = {future}
        future.add_done_callback(waiting.discard)
        kind.set("own")
        future.add_done_callback(lambda done: told.append((done.result().offset, kind.get())))
        context = contextvars.Context()
        future.add_done_callback(lambda _done: told.append(kind.get()), context=context)
        forgotten: Any = told.append
        future.add_done_callback(forgotten)
        assert future.remove_done_callback(forgotten) == 1 and future.remove_done_callback(forgotten) == 0
        await future
        await asyncio.sleep(0)
        assert told == [(0, "own"), "none"] and not waiting
        future.add_done_callback(told.append)
        assert len(told) == 2  # the loop calls it
        await asyncio.sleep(0)
        assert told[2] is future and future.remove_done_callback(forgotten) == 0

    used(world, use)


def test_callbacks_come_in_the_order_of_the_records() -> None:
    world = World(batch_size=300)
    told: list[int] = []

    def tell(number: int, _done: DeliveryFuture) -> None:
        told.append(number)

    async def use(producer: AIOKafkaProducer) -> None:
        for number in range(50):
            (await one(producer)).add_done_callback(partial(tell, number))
        await producer.flush()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    used(world, use)
    assert told == list(range(50))


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_callback_that_ends_the_run_takes_no_other_with_it(kind: type[BaseException]) -> None:
    """Later callbacks of the same future and of others come when the loop runs again."""
    world = World()
    told: list[int] = []

    def ends(_done: DeliveryFuture) -> None:
        raise kind

    async def first(producer: AIOKafkaProducer) -> None:
        for number in range(3):
            future = await one(producer)
            future.add_done_callback(ends if number == 0 else partial(tell, number))
            future.add_done_callback(partial(tell, 10 + number))

    def tell(number: int, _done: DeliveryFuture) -> None:
        told.append(number)

    loop = ManualLoop(world.clock)
    producer = loop.run_until_complete(made(world))
    loop.run_until_complete(first(producer))
    world.settle()
    with pytest.raises(kind):
        loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(asyncio.sleep(0))
    assert sorted(told) == [1, 2, 10, 11, 12]
    loop.run_until_complete(first(producer))
    loop.close()


async def made(world: World) -> AIOKafkaProducer:
    producer = AIOKafkaProducer._around(world.producer)
    producer._closed = True
    return producer


def test_a_callback_that_raises_is_told_to_the_loop() -> None:
    world = World()
    contexts: list[dict[str, Any]] = []
    told: list[Any] = []

    def fails(_done: DeliveryFuture) -> None:
        raise ZeroDivisionError

    async def use(producer: AIOKafkaProducer) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: contexts.append(context))
        future = await one(producer)
        future.add_done_callback(fails)
        future.add_done_callback(told.append)
        await producer.flush()
        assert told == [future] and contexts[0]["future"] is future

    used(world, use)
    (context,) = contexts
    assert isinstance(context["exception"], ZeroDivisionError) and "Exception in callback" in context["message"]


def test_wait_gather_shield_and_timeouts() -> None:
    world = World()

    async def use(producer: AIOKafkaProducer) -> None:
        futures: list[Any] = [await one(producer) for _ in range(3)]
        assert [found.offset for found in await asyncio.gather(*futures)] == [0, 1, 2]
        futures = [await one(producer) for _ in range(3)]
        done, pending = await asyncio.wait(futures)
        assert done == set(futures) and not pending
        assert [(await found).offset for found in asyncio.as_completed([await one(producer)])] == [6]
        assert (await asyncio.wait_for(await one(producer), HANG_S)).offset == 7
        assert (await asyncio.shield(await one(producer))).offset == 8
        world.cluster.brokers[0].held.add(PRODUCE)
        future = await one(producer)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(future, 0.05)
        assert future.cancelled()
        future = await one(producer)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(future), 0.05)
        assert not future.done()
        thaw(world)
        assert (await future).offset == 10

    used(world, use)


def test_a_cancelled_future_leaves_the_record_alone() -> None:
    world = frozen()
    told: list[Any] = []

    async def use(producer: AIOKafkaProducer) -> None:
        future = await one(producer, b"a")
        future.add_done_callback(told.append)
        waiting = asyncio.ensure_future(asyncio.gather(future))
        await asyncio.sleep(0)
        assert future.cancel("mine") and not future.cancel() and future.cancelled() and future.done()
        for ask in (future.result, future.exception):
            with pytest.raises(asyncio.CancelledError, match="mine"):
                ask()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(asyncio.CancelledError):
            await future
        assert told == [future] and repr(future) == "<DeliveryFuture cancelled>"
        plain = await one(producer, b"b")
        assert plain.cancel()
        plain.add_done_callback(told.append)
        await asyncio.sleep(0)
        assert told == [future, plain]
        thaw(world)
        await producer.flush()

    used(world, use)
    assert world.values("test", 1) == [b"a", b"b"] and len(told) == 2


def test_a_cancelled_task_cancels_what_it_awaits() -> None:
    world = frozen()

    async def use(producer: AIOKafkaProducer) -> None:
        future = await one(producer)

        async def wait() -> None:
            await future

        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert future.cancelled()

    used(world, use)


def test_a_failed_record() -> None:
    world = frozen(delivery_timeout_ms=6000)

    async def use(producer: AIOKafkaProducer) -> None:
        future = await one(producer)
        with pytest.raises(errors.RequestTimedOutError, match="Expiring 1 record") as caught:
            await future
        assert future.exception() is caught.value
        with pytest.raises(errors.RequestTimedOutError):
            await future
        assert caught.value.native is not None

    used(world, use)


def test_without_acknowledgements_there_is_nothing_to_tell() -> None:
    world = World(acks=0)

    async def use(producer: AIOKafkaProducer) -> Any:
        return await (await one(producer))

    assert used(world, use, acks=0) is None


def test_nobody_needs_to_look_at_it() -> None:
    world = World()

    async def use(producer: AIOKafkaProducer) -> None:
        for _ in range(100):
            await one(producer)
        await producer.flush()

    used(world, use)
    assert len(world.values("test", 1)) == 100 and not world.accumulator.has_incomplete()


def test_outcomes_before_a_loop_that_is_closed_at_once_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The loop was asked for a turn, and drops it."""
    world = frozen()
    told: list[Any] = []
    loop = asyncio.new_event_loop()

    async def use() -> None:
        producer = AIOKafkaProducer._around(world.producer)
        for _ in range(3):
            (await one(producer)).add_done_callback(told.append)
        producer._closed = True  # the world's producer is never closed

    loop.run_until_complete(asyncio.wait_for(use(), HANG_S))
    thaw(world)
    world.settle()
    loop.close()
    gc.collect()
    assert "3 outcome(s) cannot be handed over: Event loop is closed" in caplog.text
    assert not told and "0 outcome(s)" not in caplog.text


def test_an_outcome_after_the_loop_was_closed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    world = frozen()
    told: list[Any] = []

    async def use(producer: AIOKafkaProducer) -> DeliveryFuture:
        future = await one(producer)
        future.add_done_callback(told.append)
        return future

    future = used(world, use)
    thaw(world)
    world.settle()
    assert future.done() and future.result().offset == 0 and not told
    assert "1 outcome(s) cannot be handed over: Event loop is closed" in caplog.text


def test_without_memory_to_ask_the_loop_later_outcomes_come(caplog: pytest.LogCaptureFixture) -> None:
    world = frozen()
    told: list[Any] = []
    loop = PoorLoop()

    async def use() -> None:
        producer = AIOKafkaProducer._around(world.producer)
        for partition in range(2):
            future = await producer.send("test", b"v", partition=partition)
            future.add_done_callback(lambda future: told.append(future.result().partition))
        producer._closed = True  # the world's producer is never closed

    loop.run_until_complete(asyncio.wait_for(use(), HANG_S))
    thaw(world)
    world.settle()
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert len(told) == 1 and "1 outcome(s) cannot be handed over" in caplog.text
    loop.close()
