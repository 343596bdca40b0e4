"""What the drop-in classes are built of: the names for both forms, and what they may ask of a producer."""

from __future__ import annotations

import re
from pathlib import Path

import forebay
from forebay.errors import TopicAuthorizationError
from forebay.producer import _frontend
from forebay.producer._frontend import Inside
from tests.fakes.broker import PRODUCE
from tests.fakes.world import World


def declared() -> set[str]:
    """What a compiled front end can cimport."""
    text = (Path(forebay.__file__).parent / "producer" / "_frontend.pxd").read_text(encoding="utf-8")
    found = re.findall(r"cimport (\([^)]*\)|.+)", text)
    return {name.strip() for names in found for name in names.strip("()").split(",") if name.strip()}


def test_each_name_is_there_and_what_is_cimported_is_there_interpreted() -> None:
    assert [name for name in _frontend.__all__ if not hasattr(_frontend, name)] == []
    assert set(_frontend.__all__) <= set(dir(_frontend))
    if forebay.implementation == "interpreted":
        assert declared() <= set(_frontend.__all__)


def test_a_front_end_sees_the_cluster_and_asks_for_a_topic() -> None:
    world = World(topics={"test": 2, "other": 3})
    inside = Inside(world.producer)
    assert inside.cluster().partition_count("test") == 2
    assert inside.clock.now() == world.now
    assert inside.patience_ms == inside.config["max.block.ms"] == 1000
    world.cluster.create("later", 4, range(1))
    inside.ask_for("later")
    world.settle(12)
    assert inside.cluster().partition_count("later") == 4


def test_it_sees_what_is_on_its_way() -> None:
    world = World()
    inside = Inside(world.producer)
    assert not inside.has_unfinished()
    world.cluster.brokers[0].held.add(PRODUCE)
    future = world.send(b"v")
    assert inside.has_unfinished()
    world.cluster.brokers[0].held.clear()
    world.until(future.done)
    assert not inside.has_unfinished() and not inside.is_sealed()


def test_it_counts_what_was_refused_and_what_nobody_hears_of() -> None:
    world = World()
    inside = Inside(world.producer)
    inside.note_refused()
    (errors,) = [value for name, value in world.producer.metrics().items() if name.name == "record-error-total"]
    assert errors == 1
    inside.note_unheard(TopicAuthorizationError("no"), 3)  # the log has it


def test_it_knows_no_password_and_no_error_where_there_is_none() -> None:
    world = World()
    inside = Inside(world.producer)
    assert not inside.has_password()
    assert list(inside.last_errors()) == [None]


def test_it_knows_the_state_of_a_transaction() -> None:
    world = World(idempotent=True, transactional_id="t")
    assert Inside(world.producer).transaction_state().value == "UNINITIALIZED"
