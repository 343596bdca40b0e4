"""KafkaProducer and AsyncKafkaProducer: each call has its counterpart with the same parameters, or a reason."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from forebay import AsyncKafkaProducer, KafkaProducer
from tools.stubs import c_functions

PAGE = Path(__file__).parents[3] / "docs" / "asyncio.md"
ALONE = {"send_nowait": KafkaProducer, "send_and_wait": AsyncKafkaProducer}
"""Calls of one class, which the page gives reasons for."""
AT_ONCE = {
    "advise", "begin_transaction", "describe", "detach_transaction", "from_env", "from_properties", "metrics",
    "record_trace", "set_sasl_credentials", "set_transactional_id", "transaction",
}  # fmt: skip
"""Calls that wait for nothing, and so are no coroutines; a transaction is entered by ``async with``."""


def calls(kind: type) -> dict[str, Any]:
    """The public calls and attributes of a class."""
    names = (name for name in dir(kind) if not name.startswith("_") and name not in c_functions())
    return {name: getattr(kind, name) for name in names if hasattr(kind, name)}


def parameters(call: Any) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults, without the object itself, in the order of names where order says nothing."""
    given = [each for each in inspect.signature(call).parameters.values() if each.name != "self"]
    by_name = [each for each in given if each.kind is each.KEYWORD_ONLY]
    return [
        (each.name, each.kind, each.default)
        for each in (*(each for each in given if each not in by_name), *sorted(by_name, key=lambda each: each.name))
    ]


SHARED = sorted(set(calls(KafkaProducer)) & set(calls(AsyncKafkaProducer)))


def test_what_one_of_them_has_alone_has_a_reason_on_the_page() -> None:
    both, asynchronous = set(calls(KafkaProducer)), set(calls(AsyncKafkaProducer))
    assert both ^ asynchronous == set(ALONE)
    table = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert {line.split("`")[1] for line in table} >= set(ALONE)


@pytest.mark.parametrize("name", SHARED)
def test_a_call_has_the_same_parameters_and_waits_in_its_own_way(name: str) -> None:
    one, other = calls(KafkaProducer)[name], calls(AsyncKafkaProducer)[name]
    assert isinstance(one, property) == isinstance(other, property)
    if not isinstance(one, property):
        assert parameters(one) == parameters(other)
        original = inspect.unwrap(other, stop=lambda call: inspect.iscoroutinefunction(call))
        assert inspect.iscoroutinefunction(original) == (name not in AT_ONCE)


def test_both_are_made_of_the_same_options() -> None:
    assert parameters(KafkaProducer) == parameters(AsyncKafkaProducer)
