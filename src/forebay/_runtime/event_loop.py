"""How an event loop waits for what other threads bring about: a ticket whose wake reaches the loop.

Other threads may call one method of a loop only, and each such call wakes it by a system call.  So what they have for a
loop goes through its ``Handover``: one call takes all that came since the last one.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Protocol, TypeVar

from forebay._runtime.threads import start_thread
from forebay._runtime.ticket import Ticket

T = TypeVar("T")

logger = logging.getLogger("forebay.callbacks")

LONGEST_RUN_S = 0.002
"""After so much time the loop's other work comes first.

It is longer than sends may go on (``aio.LONGEST_HOLD_S``): a loop that only sends keeps up with its callbacks.
"""
CALLS_BETWEEN_LOOKS = 32
"""How many calls go by between two looks at the loop's clock."""

_handovers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Handover] = weakref.WeakKeyDictionary()


class Handover:
    """What other threads have for one event loop.

    ``put`` may be called by any thread.  No lock is needed: a call is put into the queue before the flag is read, and
    the loop clears the flag before it reads the queue.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Weak, because the loop is this object's key in a dictionary of weak references.
        self._loop = weakref.ref(loop)
        self._calls: deque[Callable[[], object]] = deque()
        self._asked = False

    def put(self, call: Callable[[], object]) -> None:
        """Has the loop make this call; those of one thread in order.  Never blocks, never raises.

        If the loop is closed or gone, the call is dropped, and that is logged.
        """
        self._calls.append(call)
        if not self._asked:
            self._asked = True
            loop = self._loop()
            try:
                if loop is None:
                    raise RuntimeError("the event loop is gone")
                loop.call_soon_threadsafe(Turn(self))
            except RuntimeError as error:
                self.drop(str(error))  # not the error: its traceback refers to the loop, and a log may keep it
            except MemoryError:
                self._asked = False  # the next call asks again

    def drop(self, reason: str) -> None:
        """No turn comes any more: what waits for one is dropped, and that is logged."""
        self._asked = False  # first, so that what another thread puts now asks for itself
        dropped = 0
        with suppress(IndexError):
            while True:
                self._calls.popleft()
                dropped += 1
        if dropped:
            logger.warning("%d outcome(s) cannot be handed over: %s", dropped, reason)

    def run(self) -> None:
        """Makes the calls that wait; what does not fit in its time comes in the next turn."""
        calls = self._calls
        loop = asyncio.get_running_loop()
        end = loop.time() + LONGEST_RUN_S
        try:
            while calls and loop.time() < end:
                for _ in range(min(len(calls), CALLS_BETWEEN_LOOKS)):
                    self._call(calls.popleft())
        finally:
            # Also after SystemExit and KeyboardInterrupt, which end the loop's run but not always the loop.
            # Cleared before the queue is read for the last time: what is put after that asks again.
            self._asked = False
            if calls:
                self._asked = True
                loop.call_soon(Turn(self))

    @staticmethod
    def _call(call: Callable[[], object]) -> None:
        try:
            call()
        except Exception:
            logger.exception("a delivery callback on the event loop raised")


class Waiting(Protocol):
    """What has something for a loop."""

    def run(self) -> None:
        """The loop's turn."""
        ...

    def drop(self, reason: str) -> None:
        """No turn comes any more."""
        ...


class Turn:
    """A call that a loop was asked for.  A loop that is closed before drops it, and only this then hears of it."""

    __slots__ = ("_waiting",)

    def __init__(self, waiting: Waiting) -> None:
        self._waiting: Waiting | None = waiting

    def __call__(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.run()

    def __del__(self) -> None:
        # A signal handler may have raised before the first line of __init__.
        waiting = getattr(self, "_waiting", None)
        if waiting is not None:
            waiting.drop("Event loop is closed")


def running_loop() -> asyncio.AbstractEventLoop:
    """The event loop that runs the caller.

    Raises:
        RuntimeError: none does.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "No asyncio event loop runs here.  Coroutines of forebay, and `await future`, run on asyncio, uvloop and "
            "anyio's asyncio backend.  Under trio use KafkaProducer: send() there needs no await, and what waits "
            "(result, flush, close) goes to trio.to_thread.run_sync"
        ) from None


async def on_own_thread(call: Callable[[], T], name: str) -> T:
    """What ``call`` returns or raises on a thread of its own; if it is cancelled the thread goes on, and nobody waits.

    Not on the loop's pool, for whose threads ``asyncio.run`` waits at its end.

    Raises:
        RuntimeError: no thread can be started.
    """
    ticket = LoopTicket(running_loop())
    context = copy_context()
    outcome: Future[T] = Future()

    waiting = [ticket]

    def run() -> None:
        try:
            outcome.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001 - for the caller, whatever it is
            outcome.set_exception(error)
            if not waiting:
                logger.error("A call on thread %s, whose await was cancelled, raised %r", name, error)
        for each in tuple(waiting):
            each.wake()

    start_thread(run, name)
    try:
        await ticket.wait(None)
    finally:
        waiting.clear()
    return outcome.result(0)


def handover_of(loop: asyncio.AbstractEventLoop) -> Handover:
    """The loop's handover; called on the loop's thread."""
    found = _handovers.get(loop)
    if found is None:
        found = _handovers[loop] = Handover(loop)
    return found


class LoopTicket(Ticket):
    """A ticket for a coroutine; made and waited for on its loop's thread.

    Args:
        loop: the running one.
    """

    __slots__ = ("_future", "_handover", "_loop", "_woken")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._handover = handover_of(loop)
        self._future: asyncio.Future[None] | None = None
        self._woken = False

    def wake(self) -> None:
        self._handover.put(self._wake_here)

    def _wake_here(self) -> None:
        self._woken = True
        if self._future is not None:
            _set(self._future)

    async def wait(self, timeout_ms: float | None) -> bool:
        """Waits for the next wake; False if ``timeout_ms`` passed first (None: never)."""
        if not self._woken:
            future = self._future = self._loop.create_future()
            timer: Any = None
            if timeout_ms is not None:
                timer = self._loop.call_later(max(timeout_ms, 0.0) / 1000, _set, future)
            try:
                await future
            finally:
                self._future = None
                if timer is not None:
                    timer.cancel()
        woken, self._woken = self._woken, False
        return woken


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class LoopCallback:
    """An ``on_delivery`` of the user's, called on the sender's thread, that runs on the event loop."""

    __slots__ = ("_callback", "_handover")

    def __init__(self, handover: Handover, callback: Callable[[Any], object]) -> None:
        self._handover = handover
        self._callback = callback

    def __call__(self, report: Any) -> None:
        self._handover.put(partial(self._callback, report))


async def is_there(result: Any, timeout_ms: float | None, loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a batch has its outcome, waited for at most ``timeout_ms``."""
    ticket = LoopTicket(loop)
    if result.subscribe(ticket):
        return True
    try:
        return await ticket.wait(timeout_ms)
    finally:
        result.unsubscribe(ticket)
