"""What ``send()`` refused is let go at once, whoever asks for the error."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable

import pytest

from forebay.errors import KafkaError
from forebay.model import ProducerRecord
from forebay.producer._pending import pending_send
from tests.fakes.broker import Topic
from tests.fakes.tickets import CountingTicket
from tests.fakes.waiting import meanwhile
from tests.fakes.world import Told, World


def nowait_without_memory(told: Told) -> None:
    world = World(batch_size=1000, buffer_memory=2000)
    for partition in (0, 1):
        world.producer.send_nowait("test", bytes(900), partition=partition)
    world.producer.send_nowait("test", bytes(900), partition=0, on_delivery=told)


def nowait_without_metadata(told: Told) -> None:
    World().producer.send_nowait("unknown", b"v", on_delivery=told)


def too_large(told: Told) -> None:
    World(max_request_size=1).producer.send("test", b"v", on_delivery=told).result(0)


def of_a_forbidden_topic(told: Told) -> None:
    world = World()
    world.cluster.topics["secret"] = Topic(error=29)
    meanwhile(world, lambda: world.producer.send("secret", b"v", on_delivery=told)).result(0)


def in_a_pending_send(told: Told) -> None:
    record = ProducerRecord("test", b"v", partition=0)
    sent = pending_send(World(max_request_size=1).producer, record, told).step(CountingTicket())
    assert sent is not None
    sent.result(0)


@pytest.mark.parametrize(
    "refuse", [nowait_without_memory, nowait_without_metadata, too_large, of_a_forbidden_topic, in_a_pending_send]
)
def test_a_refused_record_is_let_go_without_the_garbage_collector(refuse: Callable[[Told], None]) -> None:
    """A frame of the error's traceback that refers to the error would keep the record until a collection."""
    told = Told()
    known = weakref.ref(told)
    gc.disable()
    try:
        with contextlib.suppress(KafkaError):
            refuse(told)
        del told
        assert known() is None
    finally:
        gc.enable()
