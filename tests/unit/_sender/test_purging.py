"""purging: what a call takes down, and that a waiter is never left behind."""

from __future__ import annotations

from typing import Any

import pytest

from forebay._runtime.log import RateLimitedLogger
from forebay._sender.purging import Purge, apply
from forebay.errors import PurgedError
from tests.fakes.world import World


def apply_to(world: World, request: Purge, outcomes: Any = None) -> None:
    log = RateLimitedLogger("forebay.sender", prefix="")
    apply(request, world.accumulator, world.sender.in_flight, outcomes or world.sender.outcomes, log, 0)


class Failing:
    """Outcomes that cannot be applied."""

    def __init__(self) -> None:
        self.ended: list[Any] = []

    def purge(self, batch: Any, error: PurgedError, now: float) -> None:
        raise MemoryError

    def end_after_error(self, batch: Any, failure: Exception) -> None:
        self.ended.append(batch)


def test_batches_of_the_call_take_no_further_record() -> None:
    world = World(linger_ms=5000)
    world.send()
    request = Purge.of(world.accumulator.incomplete_batches, in_queue=True, in_flight=True)
    world.send()
    assert [batch.record_count for batch in request.batches] == [1]
    assert len(world.accumulator.incomplete()) == 2


def test_without_the_queue_batches_go_on_taking_records() -> None:
    world = World(linger_ms=5000)
    world.send()
    request = Purge.of(world.accumulator.incomplete_batches, in_queue=False, in_flight=True)
    world.send()
    assert [batch.record_count for batch in request.batches] == [2]
    apply_to(world, request)
    assert request.result.done and len(world.accumulator.incomplete()) == 1


def test_an_outcome_that_cannot_be_applied_holds_up_no_other_and_no_waiter() -> None:
    world = World(linger_ms=5000)
    futures = [world.send(partition=number) for number in range(2)]
    request = Purge.of(world.accumulator.incomplete_batches, in_queue=True, in_flight=True)
    failing = Failing()
    apply_to(world, request, failing)
    assert request.result.done and len(failing.ended) == 2
    assert not any(future.done() for future in futures)


def test_what_has_an_outcome_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    request_before = world.send()
    request = Purge.of(world.accumulator.incomplete_batches, in_queue=True, in_flight=True)
    world.settle()
    apply_to(world, request)
    assert request_before.result(0).offset == 0
    assert caplog.messages == []
