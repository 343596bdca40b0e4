"""_insight.values: a description on its way to another process."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from forebay._insight.values import ProducerDescription
from tests.fakes.world import World
from tests.unit._insight.test_text import SEEN


def test_it_comes_back_as_it_went() -> None:
    assert ProducerDescription.from_json(SEEN.as_json()) == SEEN
    for options in ({}, {"idempotent": True}):
        world = World(**options)  # type: ignore[arg-type]
        world.send(b"v")
        seen = world.producer.describe()
        assert b"\n" not in seen.as_json()
        assert ProducerDescription.from_json(seen.as_json()) == seen


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"{}", b"\xff", b"5", SEEN.as_json().replace(b"uptime_ms", b"age")])
def test_what_is_no_description(line: bytes) -> None:
    with pytest.raises(ValueError, match="no description of a producer of this version"):
        ProducerDescription.from_json(line)


def test_it_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        SEEN.unfinished = 5  # type: ignore[misc]
