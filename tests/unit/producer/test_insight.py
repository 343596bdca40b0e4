"""producer._insight: what a producer tells of itself; ``_insight`` and ``_metrics`` have tests of what it tells."""

from __future__ import annotations

import pytest

from forebay.errors import ForkedProducerError
from forebay.producer._path import FORKED
from tests.fakes.world import World


def test_metrics_and_description_are_of_now() -> None:
    world = World(client_id="me")
    world.send(b"v")
    world.settle()
    world.advance(5)
    assert world.producer.metrics().value("record-send-total") == 1
    seen = world.producer.describe()
    assert (seen.client_id, seen.metrics["record-send-total"], seen.uptime_ms) == ("me", 1, 5)


def test_a_copy_in_a_forked_child_tells_nothing() -> None:
    world = World()
    world.producer._set_state(FORKED)
    for call in (world.producer.metrics, world.producer.describe, world.producer.client_instance_id):
        with pytest.raises(ForkedProducerError):
            call()
