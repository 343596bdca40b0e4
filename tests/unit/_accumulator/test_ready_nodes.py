"""What a look at the schedule found, where there was nothing and where a partition has no leader."""

from __future__ import annotations

import math

from tests.unit._accumulator.shelf import Shelf


def test_each_look_finds_for_itself() -> None:
    shelf = Shelf(linger=0)
    shelf.append(0)
    first, second = shelf.ready(), shelf.ready()
    first.nodes.append(7)
    assert (second.nodes, second.next_check) == ([0], math.inf)
    assert second.leaderless is None
