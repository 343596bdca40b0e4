"""Parts that belong to one thread say so in the interpreted form."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import forebay
from forebay._runtime.owner import change_owner, check_owner
from tests.fakes.world import World
from tests.support.pace import HANG_S


class Part:
    """Anything that one thread owns."""


def on_another_thread(call: Callable[[], object]) -> list[BaseException]:
    """What ``call`` raised there."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except AssertionError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(HANG_S)
    return raised


def test_the_first_thread_owns_a_part() -> None:
    part = Part()
    check_owner(part)
    check_owner(part)
    (error,) = on_another_thread(lambda: check_owner(part))
    assert "Part belongs to thread" in str(error)
    change_owner(part)
    assert on_another_thread(lambda: check_owner(part)) == []
    with pytest.raises(AssertionError, match="was used by thread"):
        check_owner(part)


def test_a_part_without_attributes_of_its_own_changes_nothing() -> None:
    change_owner(object())
    change_owner(Part())


def parts(world: World) -> list[Callable[[], object]]:
    sender, now = world.parts.sender, world.clock.now()
    accumulator = world.parts.accumulator
    return [
        lambda: sender.run_once(now),
        lambda: world.parts.client.poll(0, now),
        lambda: accumulator.schedule.ready(now, False),
        lambda: accumulator.drain.drain(0, 1, now, None),
    ]


@pytest.mark.parametrize("number", range(4))
def test_what_belongs_to_the_senders_thread_is_used_there(number: int) -> None:
    world = World()
    world.send()
    world.settle()
    raised = on_another_thread(parts(world)[number])
    assert len(raised) == (1 if forebay.implementation == "interpreted" else 0)
