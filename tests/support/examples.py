"""How many generated inputs a test tries, by ``FOREBAY_EXAMPLES``.

``small`` is what ``make test`` takes.  ``whole`` is what ``make test-rest`` takes, and pytest called by hand.  ``long``
has many times as many of Hypothesis's examples, for a search that takes hours.  A test whose inputs depend on this is
marked ``sized``: it runs in both commands, small in the one and whole in the other.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

VARIABLE = "FOREBAY_EXAMPLES"
SIZES = ("small", "whole", "long")
FEWEST_EXAMPLES = 10
FEWEST_CASES = 300
FEWEST_OF_EACH = 4

Value = TypeVar("Value")


def size() -> str:
    """The size that this run takes."""
    asked = os.environ.get(VARIABLE) or "whole"
    if asked not in SIZES:
        raise pytest.UsageError(f"{VARIABLE}={asked!r}: it must be one of {', '.join(SIZES)}")
    return asked


def examples(whole: int) -> int:
    """Of Hypothesis; ``whole`` is the number in a whole run."""
    if size() == "small":
        return min(whole, max(FEWEST_EXAMPLES, whole // 5))
    return whole * 40 if size() == "long" else whole


def cases(whole: int) -> int:
    """Of a generated table, which is never longer than ``whole``: each is checked within one test's time limit."""
    return min(whole, max(FEWEST_CASES, whole // 20)) if size() == "small" else whole


def some_of_each(values: Iterable[Value], kind: Callable[[Value], object]) -> list[Value]:
    """Of a table for a small run: of each kind some values, from its whole length."""
    kinds: dict[object, list[Value]] = defaultdict(list)
    for value in values:
        kinds[kind(value)].append(value)
    return [value for found in kinds.values() for value in found[:: max(1, len(found) // FEWEST_OF_EACH)]]
