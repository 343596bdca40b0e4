"""The faults of a run are what its seed says, and every kind comes early."""

from __future__ import annotations

import itertools

import pytest

from tests.soak.faults import NODE_FAULTS, NODE_PEACE_S, PROXY_FAULTS, PROXY_PEACE_S, Fault, Kind, drawn
from tests.soak.run import plans

TRACKS = pytest.mark.parametrize(("kinds", "peace"), [(NODE_FAULTS, NODE_PEACE_S), (PROXY_FAULTS, PROXY_PEACE_S)])


def first(seed: str, kinds: dict[str, Kind], peace: tuple[float, float], count: int) -> list[Fault]:
    return list(itertools.islice(drawn(seed, kinds, peace, 3), count))


@TRACKS
def test_a_seed_repeats_its_faults(kinds: dict[str, Kind], peace: tuple[float, float]) -> None:
    assert first("a", kinds, peace, 100) == first("a", kinds, peace, 100)
    assert first("a", kinds, peace, 100) != first("b", kinds, peace, 100)


@TRACKS
def test_each_deck_holds_every_kind_and_keeps_to_its_limits(kinds: dict[str, Kind], peace: tuple[float, float]) -> None:
    deck = sum(kind.dealt for kind in kinds.values())
    faults = first("a", kinds, peace, 4 * deck)
    for start in range(0, len(faults), deck):
        assert {fault.kind for fault in faults[start : start + deck]} == set(kinds)
    for fault in faults:
        kind = kinds[fault.kind]
        assert kind.shortest <= fault.seconds <= kind.longest
        assert peace[0] <= fault.peace <= peace[1]
        assert fault.node in (0, 1, 2)


def test_a_seed_repeats_its_loads() -> None:
    assert plans("a") == plans("a")
    assert plans("a") != plans("b")
    assert len({plan.name for plan in plans("a")}) == len(plans("a")) >= 4
