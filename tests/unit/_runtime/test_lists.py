"""Lists that are put into and taken from without giving their memory back: what they hold is what a list would."""

from __future__ import annotations

import random
import sys
from types import ModuleType

import pytest


@pytest.mark.parametrize("longest", [1, 2, 5, 9, 40])
def test_as_a_list_does_it(probe: ModuleType, longest: int) -> None:
    draw = random.Random(longest)
    items: list[object] = []
    model: list[object] = []
    for number in range(2000):
        if model and (len(model) == longest or draw.random() < 0.5):
            at = draw.randrange(len(model))
            assert probe.take(items, at) == model.pop(at)
        else:
            item = f"item {number}"
            probe.put(items, item)
            model.append(item)
        assert items == model


def test_each_item_is_let_go_of_once(probe: ModuleType) -> None:
    item = object()
    before = sys.getrefcount(item)
    for length in (1, 30):
        items: list[object] = []
        for _ in range(length):
            probe.put(items, item)
        assert sys.getrefcount(item) == before + length
        for _ in range(length):
            assert probe.take(items, 0) is item
        assert sys.getrefcount(item) == before


@pytest.mark.parametrize("at", [-1, 0, 2])
def test_what_is_not_there_cannot_be_taken(probe: ModuleType, at: int) -> None:
    items: list[object] = ["one", "two"] if at else []
    kept = list(items)
    with pytest.raises(IndexError):
        probe.take(items, at)
    assert items == kept


def test_a_long_list_shrinks(probe: ModuleType) -> None:
    items: list[object] = []
    for number in range(1000):
        probe.put(items, number)
    longest = sys.getsizeof(items)
    while len(items) > 1:
        probe.take(items, 0)
    assert sys.getsizeof(items) < longest / 10
