"""Produce requests that wait for their answers, and answering them by hand."""

from __future__ import annotations

from typing import Any

from tests.fakes.broker import PRODUCE, Received
from tests.fakes.produce import Answer, answer_produce, batches_of
from tests.fakes.world import World


def hold(world: World, node: int = 0) -> None:
    """The broker answers no further produce request by itself."""
    world.cluster.brokers[node].held.add(PRODUCE)


def held(world: World, node: int = 0) -> list[Received]:
    """The produce requests that wait for an answer."""
    return [request for request in world.cluster.brokers[node].waiting if request.api_key == PRODUCE]


def reply(world: World, *parts: tuple[int, Answer], node: int = 0, **more: Any) -> None:
    """Answers the oldest produce request that waits, for partitions of "test"."""
    request = held(world, node)[0]
    world.cluster.brokers[node].waiting.remove(request)
    answer_produce(request, {("test", partition): answer for partition, answer in parts}, **more)


def sequences(world: World, count: int) -> list[int]:
    """Base sequences in the newest produce requests."""
    return [
        batch.base_sequence for request in world.cluster.requests()[-count:] for batch in batches_of(request).values()
    ]


def lose_answers(world: World, written: int) -> None:
    """The first ``written`` requests do their work; then the connection and the broker's memory go."""
    for request in held(world)[:written]:
        world.cluster.take(request)
    broker = world.cluster.brokers[0]
    broker.waiting.clear()
    broker.held.clear()
    world.cluster.restart(0)
