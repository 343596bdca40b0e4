"""KafkaProducer and AsyncKafkaProducer: what one has the other has, with the same parameters, or there is a reason."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from forebay import AsyncKafkaProducer, KafkaProducer

ALONE = {
    "send_nowait": "KafkaProducer",  # `send` of the other one never blocks the event loop
    "send_and_wait": "AsyncKafkaProducer",  # of a KafkaProducer it is `send(...).result()`
}
"""Methods that only one has; docs/asyncio.md says what the other one has for them."""
OTHER_RESULT = {"transaction": "a context manager, which is `async with` there"}
PAGE = Path(__file__).parents[3] / "docs" / "asyncio.md"


def public(kind: type[Any]) -> dict[str, Any]:
    """Hints for other clients' names are no attributes: to read one raises AttributeError."""
    return {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_") and hasattr(kind, name)}


def test_each_has_what_the_other_has() -> None:
    blocking, asyncio = public(KafkaProducer), public(AsyncKafkaProducer)
    assert (
        dict.fromkeys(blocking.keys() - asyncio.keys(), "KafkaProducer")
        | dict.fromkeys(asyncio.keys() - blocking.keys(), "AsyncKafkaProducer")
        == ALONE
    )


@pytest.mark.parametrize("name", sorted(public(KafkaProducer).keys() - ALONE.keys()))
def test_the_parameters_are_the_same(name: str) -> None:
    blocking, asyncio = public(KafkaProducer)[name], public(AsyncKafkaProducer)[name]
    if isinstance(blocking, property):
        assert isinstance(asyncio, property)
        return
    mine, other = inspect.signature(blocking), inspect.signature(asyncio)
    assert list(mine.parameters.values()) == list(other.parameters.values())
    if name not in OTHER_RESULT and name not in ("send", "send_batch", "from_env", "from_properties"):
        assert mine.return_annotation == other.return_annotation


def test_the_constructors_take_the_same_options() -> None:
    blocking, asyncio = inspect.signature(KafkaProducer), inspect.signature(AsyncKafkaProducer)
    assert list(blocking.parameters.values()) == list(asyncio.parameters.values())


@pytest.mark.parametrize("name", ALONE)
def test_the_page_says_what_stands_for_what_only_one_has(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")
