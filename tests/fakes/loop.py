"""An event loop on the manual clock, and a whole producer that is driven from it."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from forebay.testing.clock import ManualClock
from tests.fakes.world import World

T = TypeVar("T")


class _AtOnce(selectors.DefaultSelector):
    """A selector that never waits: time passes only where the test says so."""

    def select(self, timeout: float | None = None) -> Any:
        return super().select(0)


class ManualLoop(asyncio.SelectorEventLoop):
    """Its timers are due by ``clock``."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(_AtOnce())
        self.clock = clock

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        """No call of ours may: ``asyncio.run`` waits at its end for what is on a thread of the pool."""
        raise AssertionError("a thread of the loop's pool was asked for")

    def time(self) -> float:
        return self.clock.now() / 1000


def drive(world: World, main: Callable[[], Coroutine[Any, Any, T]], *, limit: int = 20_000, step: float = 1) -> T:
    """Runs a coroutine while the sender takes a turn, and the clock moves by ``step`` ms, between two of its steps."""
    loop = ManualLoop(world.clock)
    try:
        task = loop.create_task(main())
        for _ in range(limit):
            loop.call_soon(loop.stop)
            loop.run_forever()
            if task.done():
                return task.result()
            world.turn()
            world.advance(step)
        task.cancel()
        raise AssertionError("it still waits")
    finally:
        loop.close()
