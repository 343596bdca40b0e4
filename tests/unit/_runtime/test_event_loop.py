"""What other threads hand over to an event loop: once, in order, in few calls, and never with an error of theirs."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import threading
import weakref
from functools import partial

import pytest

from forebay._runtime.event_loop import (
    CALLS_BETWEEN_LOOKS,
    Handover,
    LoopTicket,
    handover_of,
    on_own_thread,
    running_loop,
)
from forebay.testing.clock import ManualClock
from tests.fakes.loop import ManualLoop
from tests.support.pace import HANG_MS


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts what other threads ask of it."""

    asked = 0

    def call_soon_threadsafe(self, *args: object, **more: object) -> asyncio.Handle:
        self.asked += 1
        return super().call_soon_threadsafe(*args, **more)  # type: ignore[arg-type]


class PoorLoop(asyncio.SelectorEventLoop):
    """Another thread's first call finds no memory."""

    is_poor = True

    def call_soon_threadsafe(self, *args: object, **more: object) -> asyncio.Handle:
        if self.is_poor:
            self.is_poor = False
            raise MemoryError
        return super().call_soon_threadsafe(*args, **more)  # type: ignore[arg-type]


def run_once(loop: asyncio.AbstractEventLoop) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def test_a_burst_is_one_call_of_the_loop() -> None:
    loop = CountingLoop()
    got: list[int] = []
    handover = Handover(loop)
    for number in range(100):
        handover.put(partial(got.append, number))
    assert (loop.asked, got) == (1, [])
    run_once(loop)
    assert (loop.asked, got) == (1, list(range(100)))
    handover.put(lambda: got.append(-1))
    run_once(loop)
    assert (loop.asked, got[-1]) == (2, -1)
    loop.close()


def test_a_long_burst_lets_the_loop_do_other_work() -> None:
    clock = ManualClock()
    loop = ManualLoop(clock)
    got: list[int] = []
    handover = Handover(loop)

    def call(number: int) -> None:
        clock.advance(0.1)
        got.append(number)

    count = 3 * CALLS_BETWEEN_LOOKS
    for number in range(count):
        handover.put(partial(call, number))
    seen = []
    for _ in range(3):
        run_once(loop)
        seen.append(len(got))
    assert seen == [CALLS_BETWEEN_LOOKS, 2 * CALLS_BETWEEN_LOOKS, count]
    assert got == list(range(count))
    loop.close()


def test_calls_of_several_threads_each_come_once_and_in_order() -> None:
    loop = asyncio.new_event_loop()
    handover = Handover(loop)
    got: list[tuple[int, int]] = []
    threads = 4
    each = 2000

    def put(thread: int) -> None:
        for number in range(each):
            handover.put(partial(got.append, (thread, number)))

    started = [threading.Thread(target=put, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    while any(thread.is_alive() for thread in started) or len(got) < threads * each:
        run_once(loop)
    for number in range(threads):
        own = [value for thread, value in got if thread == number]
        assert own == list(range(each))
    loop.close()


def test_what_a_call_raises_is_logged_and_the_next_comes(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    handover = Handover(loop)
    got: list[int] = []
    handover.put(lambda: 1 / 0)
    handover.put(lambda: got.append(1))
    run_once(loop)
    assert got == [1]
    assert "ZeroDivisionError" in caplog.text
    loop.close()


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_call_that_ends_the_run_takes_no_other_with_it(kind: type[BaseException]) -> None:
    loop = asyncio.new_event_loop()
    handover = Handover(loop)
    got: list[int] = []

    def ends() -> None:
        raise kind

    handover.put(ends)
    handover.put(partial(got.append, 1))
    with pytest.raises(kind):
        run_once(loop)
    run_once(loop)
    handover.put(partial(got.append, 2))
    run_once(loop)
    assert got == [1, 2]
    loop.close()


def test_without_memory_to_ask_the_loop_later_calls_come(caplog: pytest.LogCaptureFixture) -> None:
    loop = PoorLoop()
    handover = Handover(loop)
    called: list[int] = []
    handover.put(partial(called.append, 0))
    handover.put(partial(called.append, 1))
    run_once(loop)
    assert called == [1] and "1 outcome(s) cannot be handed over" in caplog.text
    loop.close()


def test_a_loop_that_is_closed_or_gone_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "forebay.callbacks")
    loop = asyncio.new_event_loop()
    handover = Handover(loop)
    loop.close()
    handover.put(lambda: None)
    assert "1 outcome(s) cannot be handed over: Event loop is closed" in caplog.text
    del loop
    gc.collect()
    handover.put(lambda: None)
    assert "the event loop is gone" in caplog.text


def test_a_loop_that_is_closed_before_its_turn_is_said(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    handover = handover_of(loop)
    called: list[int] = []
    for number in range(3):
        handover.put(partial(called.append, number))
    loop.close()
    gc.collect()
    assert "3 outcome(s) cannot be handed over: Event loop is closed" in caplog.text
    handover.put(partial(called.append, 3))
    assert "1 outcome(s) cannot be handed over: Event loop is closed" in caplog.text
    assert called == [] and "0 outcome(s)" not in caplog.text


def test_one_handover_for_each_loop_which_does_not_keep_it() -> None:
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    assert handover_of(first) is handover_of(first) is not handover_of(second)
    first.close()
    second.close()
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


def test_a_ticket_is_woken_by_another_thread() -> None:
    async def main() -> tuple[bool, bool]:
        ticket = LoopTicket(asyncio.get_running_loop())
        threading.Thread(target=ticket.wake).start()
        first = await ticket.wait(None)
        return first, await ticket.wait(0)

    assert asyncio.run(main()) == (True, False)


def test_a_wake_before_the_wait_counts_once() -> None:
    async def main() -> tuple[bool, bool]:
        ticket = LoopTicket(asyncio.get_running_loop())
        ticket.wake()
        ticket.wake()
        await asyncio.sleep(0)
        return await ticket.wait(None), await ticket.wait(0)

    assert asyncio.run(main()) == (True, False)


def test_a_cancelled_wait_leaves_no_timer() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        ticket = LoopTicket(loop)
        task = asyncio.ensure_future(ticket.wait(HANG_MS))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ticket.wake()
        await asyncio.sleep(0)
        return sum(not timer.cancelled() for timer in getattr(loop, "_scheduled"))  # noqa: B009 - asyncio's own

    assert asyncio.run(main()) == 0


@pytest.mark.parametrize("fails", [False, True])
def test_a_call_on_a_thread_of_its_own(fails: bool) -> None:
    """With the context of its caller, as ``asyncio.to_thread``."""
    variable = contextvars.ContextVar("variable", default=0)
    threads: list[int] = []

    def call() -> int:
        threads.append(threading.get_ident())
        if fails:
            raise OSError("own")
        return variable.get()

    async def main() -> int:
        variable.set(5)
        return await on_own_thread(call, "own")

    if fails:
        with pytest.raises(OSError, match="own"):
            asyncio.run(main())
    else:
        assert asyncio.run(main()) == 5
    assert threads != [threading.get_ident()]


def test_without_a_loop_it_is_said_what_is_needed() -> None:
    with pytest.raises(RuntimeError, match="uvloop and anyio's asyncio backend.  Under trio use KafkaProducer"):
        running_loop()
