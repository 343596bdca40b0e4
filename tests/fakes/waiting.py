"""Calls that wait, on a thread of their own, while the test takes the sender's turns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from forebay._runtime import ticket
from forebay.model import ProducerRecord, RecordMetadata
from forebay.testing.clock import ManualClock
from tests.fakes.world import Told, World
from tests.support.pace import HANG_S


class Watching:
    """An interceptor that keeps what it is told."""

    def __init__(self, change: Callable[[ProducerRecord], ProducerRecord] | None = None) -> None:
        self.change = change
        self.acknowledged = Told()

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record if self.change is None else self.change(record)

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None) -> None:
        self.acknowledged.append((metadata, error))


class Waits:
    """The waits of calls on threads: they and the test alternate, so a result does not depend on a machine's load.

    The tickets that are made meanwhile get locks from here.  Their time limits count by the manual clock.
    """

    def __init__(self, clock: ManualClock, calls: int) -> None:
        self.clock = clock
        self.changed = threading.Condition()
        # Under `changed`:
        self.running = calls
        self.waiting: set[_TicketLock] = set()

    def until_all_wait(self) -> bool:
        """Blocks until each call that has not ended waits on a ticket; False if all have ended."""
        with self.changed:
            all_wait = self.changed.wait_for(lambda: len(self.waiting) >= self.running, HANG_S)
            assert all_wait, "a call neither ends nor waits on a ticket"
            return self.running > 0

    def look(self) -> None:
        """Time has passed: every wait looks at the clock."""
        with self.changed:
            self.waiting.clear()
            self.changed.notify_all()

    def end(self) -> None:
        """One of the calls is over."""
        with self.changed:
            self.running -= 1
            self.changed.notify_all()

    @contextmanager
    def in_tickets(self) -> Iterator[None]:
        """Gives every new ticket a lock from here."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ticket, "Lock", lambda: _TicketLock(self))
            yield


class _TicketLock:
    """As the lock of a ticket, for one thread that waits."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self._taken = False

    def acquire(self, blocking: bool = True, limit_s: float = threading.TIMEOUT_MAX) -> bool:
        waits = self._waits
        with waits.changed:
            end = waits.clock.now() + limit_s * 1000
            while self._taken:
                if not blocking or waits.clock.now() >= end:
                    return False
                waits.waiting.add(self)
                waits.changed.notify_all()
                waits.changed.wait()
            self._taken = True
            return True

    def release(self) -> None:
        waits = self._waits
        with waits.changed:
            if not self._taken:
                raise RuntimeError("release unlocked lock")
            self._taken = False
            waits.waiting.discard(self)
            waits.changed.notify_all()


def meanwhile(
    world: World,
    call: Callable[[], Any],
    *,
    limit: int = 4000,
    step: float = 1,
    each: Callable[[], object] = lambda: None,
) -> Any:
    """``call`` on another thread; while it waits, the sender takes turns here, and each moves the clock by ``step`` ms.

    Args:
        each: called after each turn and step, before the call looks at the clock.

    Returns:
        What the call returned or raised.
    """

    def pass_time() -> None:
        world.turn()
        world.advance(step)
        each()

    (outcome,) = in_turns(world, [call], pass_time, limit)
    return outcome


def in_turns(
    world: World, calls: Iterable[Callable[[], Any]], pass_time: Callable[[], object], limit: int
) -> list[Any]:
    """Calls on threads of their own; whenever all of them wait, ``pass_time()``, at most ``limit`` times.

    Returns:
        What each call returned or raised.
    """
    calls = tuple(calls)
    outcomes: list[Any] = [None] * len(calls)
    waits = Waits(world.clock, len(calls))

    def run(place: int, call: Callable[[], Any]) -> None:
        try:
            outcomes[place] = call()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test looks at it
            outcomes[place] = error
        finally:
            waits.end()

    with waits.in_tickets():
        for place, call in enumerate(calls):
            threading.Thread(target=run, args=(place, call), daemon=True).start()
        for _ in range(limit):
            if not waits.until_all_wait():
                return outcomes
            pass_time()
            waits.look()
        assert not waits.until_all_wait(), "it still waits"
    return outcomes
