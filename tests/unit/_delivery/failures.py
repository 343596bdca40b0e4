"""What tests of failures that nobody hears of share: a producer whose records fail, and what the log has of them."""

from __future__ import annotations

import gc
import re
from typing import Any

import pytest

from forebay._delivery.unheard import LOOK_MS
from tests.fakes.produce import Answer
from tests.fakes.world import World

LARGE = bytes(2000)
REFUSED_BY_BROKER = 87
LINE = re.compile(r"(?:\[.*\] )?(\d+) record\(s\) for (\S+) failed: (\w+)")


class Lines:
    """What the log has of failures."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.caplog = caplog

    def __call__(self) -> list[tuple[int, str, str]]:
        """Count, place and class of each, and forgets them."""
        gc.collect()
        texts = [record.getMessage() for record in self.caplog.records]
        self.caplog.clear()
        return [(int(found[1]), found[2], found[3]) for text in texts if (found := LINE.match(text))]


def world_of(**config: Any) -> World:
    return World(topics={"t": 1}, max_request_size=1000, **config)


def said(world: World) -> None:
    """Turns in which what is due is said."""
    world.settle()
    world.let_pass(2 * LOOK_MS)
    world.settle()


def fail(world: World, answer: Answer | int = REFUSED_BY_BROKER) -> None:
    world.cluster.fail("t", 0, answer)
