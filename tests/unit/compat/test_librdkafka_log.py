"""The logger that a user of confluent-kafka's Producer gives gets that producer's lines."""

from __future__ import annotations

import gc
import logging
from typing import Any

import pytest

from tests.fakes.world import World
from tests.unit.compat.test_librdkafka_producer import ours


class Told:
    """A logger of no package's in particular."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []

    def log(self, level: int, form: str, *arguments: Any) -> None:
        self.lines.append((level, form % arguments))


def test_a_producers_lines_go_to_the_logger_that_it_was_given() -> None:
    world, told = World(), Told()
    producer = ours(world, logger=told)
    name = f"[Producer clientId={world.producer.client_id}]"
    logging.getLogger("forebay.network").warning("%s gone", name)
    logging.getLogger("forebay.network").warning("[Producer clientId=another] gone")
    logging.getLogger("forebay.network").warning("of nobody")
    assert told.lines == [(logging.WARNING, f"{name} gone")]
    del producer
    gc.collect()
    logging.getLogger("forebay.network").warning("%s gone", name)
    assert len(told.lines) == 1, "it goes with its producer"


def test_this_packages_own_logger_gets_no_line_twice(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    for own in ("forebay", "forebay.network"):
        caplog.clear()
        producer = ours(world, logger=logging.getLogger(own))
        logging.getLogger("forebay.network").warning("[Producer clientId=%s] gone", world.producer.client_id)
        assert len(caplog.records) == 1 and producer._forwarded is None


def test_a_logger_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="logger must have a method log.* got str"):
        ours(World(), logger="root")
