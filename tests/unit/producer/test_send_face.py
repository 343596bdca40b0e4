"""How ``send`` is written, in both front ends: what goes by name, old spellings, and timestamps."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime

import pytest

from forebay.errors import IllegalArgumentError
from forebay.model import ProducerRecord
from tests.fakes.loop import drive
from tests.fakes.world import World
from tests.unit.producer.test_aio import ours

MOMENT = datetime(1970, 1, 1, 0, 0, 1, 234_000, tzinfo=UTC)


@pytest.mark.parametrize("method", ["send", "send_nowait"])
def test_an_old_spelling_gets_the_new_one(method: str) -> None:
    world = World()
    send = getattr(world.producer, method)
    with pytest.raises(TypeError, match=rf"^{method}\(\) takes topic, value and key by position, .* headers=\.\.\."):
        send("test", b"v", b"k", [("h", b"1")])
    with pytest.raises(TypeError, match=rf"^{method}\(\) has no timestamp_ms: write timestamp="):
        send("test", b"v", timestamp_ms=0)
    assert not world.accumulator.has_incomplete()
    assert "timestamp_ms" not in inspect.signature(send).parameters
    assert [each.name for each in inspect.signature(send).parameters.values() if each.kind is each.KEYWORD_ONLY] == [
        *("headers", "partition", "timestamp", "on_delivery")
    ]


def test_a_timestamp_may_be_an_aware_datetime() -> None:
    world = World()
    world.producer.send("test", timestamp=MOMENT, partition=0)
    world.producer.send(ProducerRecord("test", partition=0, timestamp=MOMENT))
    world.settle()
    assert [record.timestamp for record in world.cluster.logs["test", 0].records] == [1234, 1234]
    with pytest.raises(IllegalArgumentError, match="has no time zone"):
        world.producer.send("test", timestamp=datetime(2026, 1, 1))
    with pytest.raises(IllegalArgumentError, match="Invalid timestamp: -1000"):
        world.producer.send("test", timestamp=datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC))


@pytest.mark.parametrize("method", ["send", "send_and_wait"])
def test_an_old_spelling_gets_the_new_one_awaited(method: str) -> None:
    world = World()
    send = getattr(ours(world), method)
    with pytest.raises(TypeError, match=r"^send\(\) takes topic, value and key by position, .* headers=\.\.\."):
        drive(world, lambda: send("test", b"v", b"k", [("h", b"1")]))
    with pytest.raises(TypeError, match=r"^send\(\) has no timestamp_ms: write timestamp="):
        drive(world, lambda: send("test", b"v", timestamp_ms=0))
    assert "timestamp_ms" not in inspect.signature(send).parameters
