"""A producer with nothing to do rests, whatever state its connection is in and whichever of its deadlines are over.

Turns are counted.  The clock moves only by what a turn waits: a deadline that stays in the past makes turns for ever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from forebay._accumulator.states import CLOSING
from forebay._network import credentials
from forebay._network.connection_states import State
from tests.fakes.broker import API_VERSIONS
from tests.fakes.login import Login, oauth
from tests.fakes.sasl import SASL_HANDSHAKE, HandDrivenHelper
from tests.fakes.telemetry import Receiver
from tests.fakes.world import World

SESSION_MS = 60_000
IDLE_MS = 4_000
DAY_MS = 86_400_000.0
WATCHED_MS = 60_000.0
MOST_IN_A_SECOND = 15
"""Telemetry looks ten times a second for a connection; attempts at one take some turns, and are a second apart."""


@pytest.fixture
def helper(monkeypatch: pytest.MonkeyPatch) -> HandDrivenHelper:
    made = HandDrivenHelper()
    monkeypatch.setattr(credentials, "Helper", lambda name: made)
    return made


def ready(helper: HandDrivenHelper, **config: Any) -> Login:
    """A producer that has sent a record, and has a deadline of every sort: session, token, metadata, push, idleness."""
    world, _ = oauth(helper, lifetime_ms=SESSION_MS, **config)
    Receiver(world)
    world.learned()
    world.send()
    world.until(lambda: world.values() == [b"v"])
    world.run(1_000)
    assert state_of(world) is State.READY
    return world


def state_of(world: World) -> State:
    """Of the only broker."""
    state: State = world.parts.client.states.nodes[0].state
    return state


def turns_in(world: World, ms: float) -> int:
    """How many turns the producer takes while ``ms`` pass."""
    end, turns = world.now + ms, 0
    world.selector.call_at(end, world.selector.wakeup)
    while world.now < end:
        assert turns <= MOST_IN_A_SECOND * ms / 1000, f"{turns} turns while {ms - (end - world.now):.0f} ms passed"
        world.wait()
        turns += 1
        if isinstance(world, Login) and world.helper is not None and not world.held:
            world.helper.work_off()
    return turns


# Ways into each state, and none of them leaves it by itself


def nothing_happens(world: Login) -> None:
    """It is ready, and its session is renewed again and again."""


def closed_as_idle(world: Login) -> None:
    world.run(IDLE_MS + 100, step=100)
    world.selector.refuse(world.cluster.address(0))


def closed_by_the_client(world: Login) -> None:
    world.cluster.down(0)
    world.parts.client.disconnect(0, world.now)


def lost(world: Login) -> None:
    world.cluster.down(0)


def swallowed(world: Login) -> None:
    world.selector.swallow(world.cluster.address(0))
    world.cluster.brokers[0].drop()


def silent(world: Login) -> None:
    world.cluster.brokers[0].held.add(API_VERSIONS)
    world.cluster.brokers[0].drop()


def no_answer_to_the_login(world: Login) -> None:
    world.cluster.brokers[0].held.add(SASL_HANDSHAKE)
    world.cluster.brokers[0].drop()


def no_token(world: Login) -> None:
    world.held = True
    world.advance(3_600_000)
    world.cluster.brokers[0].drop()


def no_token_for_the_session(world: Login) -> None:
    world.held = True
    world.advance(3_600_000)


def refused(world: Login) -> None:
    world.accepted = set()
    world.cluster.brokers[0].drop()


WAYS: list[tuple[State, Callable[[Login], None]]] = [
    (State.READY, nothing_happens),
    (State.READY, no_token_for_the_session),
    (State.DISCONNECTED, closed_as_idle),
    (State.DISCONNECTED, closed_by_the_client),
    (State.DISCONNECTED, lost),
    (State.CONNECTING, swallowed),
    (State.CHECKING_API_VERSIONS, silent),
    (State.AUTHENTICATING, no_answer_to_the_login),
    (State.AUTHENTICATING, no_token),
    (State.AUTHENTICATION_FAILED, refused),
]


def test_each_state_is_among_them() -> None:
    assert {state for state, _ in WAYS} == set(State)


def brought(world: Login, state: State, way: Callable[[Login], None]) -> Login:
    """The world, when its connection has come to ``state``."""
    way(world)
    end = world.now + 10_000
    while state_of(world) is not state:
        assert world.now < end, f"it is {state_of(world).name}"
        world.settle()
        world.advance(0 if state_of(world) is state else 10)
    return world


@pytest.mark.parametrize("before", [0.0, DAY_MS])
@pytest.mark.parametrize(("state", "way"), WAYS)
def test_an_idle_producer_rests_and_goes_on(
    helper: HandDrivenHelper, state: State, way: Callable[[Login], None], before: float
) -> None:
    """Also if all its deadlines were over at once, as after a sleep of the machine.  None of them is forgotten either:
    nothing but a deadline makes it try again."""
    world = brought(ready(helper, connections_max_idle_ms=IDLE_MS if way is closed_as_idle else 540_000), state, way)
    world.advance(before)
    turns_in(world, WATCHED_MS)
    world.accepted, world.held = None, False
    world.cluster.up(0)
    world.cluster.brokers[0].held.clear()
    world.metadata.add_topic("test", world.now)
    turns_in(world, WATCHED_MS)
    world.accumulator.refresh("test", world.metadata.cluster())
    world.send()
    turns_in(world, WATCHED_MS)
    assert world.values() == [b"v", b"v"]


# What may wait meanwhile


class Nobody:
    """In the place of helpers that compress: accepts all and does nothing, as if memory ran out at its first step."""

    def accept(self, queue: object, size: int) -> bool:
        return True


def fill(world: World) -> None:
    """A batch that is full, and that its filler was to compress."""
    closer = world.accumulator.closer
    closer.helpers = Nobody()
    closer.helped_threads.add(threading.get_ident())
    while len(world.queue().batches) < 2:
        world.send(os.urandom(100))


def half_compressed(world: World) -> None:
    fill(world)
    world.queue().batches[0].become(CLOSING)


def one_record(world: World) -> None:
    world.send()


WAITING = [one_record, fill, half_compressed]


def without_leader(world: World) -> None:
    world.cluster.topics["test"].partitions[0].leader = -1
    world.cluster.topics["test"].partitions[0].error = 5
    world.metadata.request_update()
    world.run(300)


def without_broker(world: World) -> None:
    world.cluster.down(0)
    world.run(300)


def muted(world: World) -> None:
    world.queue().muted = True


PLACES = [without_leader, without_broker, muted]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("waiting", WAITING)
def test_what_waits_keeps_nobody_busy_and_expires(
    waiting: Callable[[World], None], place: Callable[[World], None]
) -> None:
    world = World(
        compression_type="lz4",
        batch_size=500,
        linger_ms=10_000,
        delivery_timeout_ms=50_000,
        retry_backoff_ms=500,
        retry_backoff_max_ms=1000,
    )
    place(world)
    waiting(world)
    kept = list(world.accumulator.incomplete())
    turns_in(world, WATCHED_MS)
    assert [batch.done for batch in kept] == [True] * len(kept)
    assert not world.accumulator.has_incomplete()
