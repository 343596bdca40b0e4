"""The tables of moves, walked pair by pair; compiled code has the same numbers."""

from __future__ import annotations

import itertools

import pytest

from forebay._accumulator import states
from forebay._accumulator.states import (
    ABANDONED,
    ANNOUNCED,
    CLOSED,
    IDLE,
    LIFE_MOVES,
    LIVES,
    OPEN,
    PARKED,
    PLACE_MOVES,
    PLACES,
    WATCHED,
    packed,
)
from tests.support.forms import declared_enums, differences

TABLES = {"place": (PLACE_MOVES, PLACES), "life": (LIFE_MOVES, LIVES)}
PAIRS = [(of, *pair) for of, (_, names) in TABLES.items() for pair in itertools.product(range(len(names)), repeat=2)]


@pytest.mark.parametrize("of", TABLES)
def test_every_state_has_its_row_and_a_name(of: str) -> None:
    moves, names = TABLES[of]
    assert list(moves) == list(range(len(names))) and all(getattr(states, name) == at for at, name in enumerate(names))
    assert all(targets <= set(moves) and source not in targets for source, targets in moves.items())


@pytest.mark.parametrize(("of", "source", "target"), PAIRS)
def test_a_packed_table_says_the_same(of: str, source: int, target: int) -> None:
    moves = TABLES[of][0]
    assert (packed(moves) >> (8 * source + target)) & 1 == (target in moves[source])


def test_a_queue_comes_to_every_place_and_leaves_it() -> None:
    assert all(PLACE_MOVES.values()) and set().union(*PLACE_MOVES.values()) == set(PLACE_MOVES)
    places = itertools.permutations(PLACE_MOVES, 2)
    refused = {(source, target) for source, target in places if target not in PLACE_MOVES[source]}
    assert refused == {(IDLE, PARKED), (ANNOUNCED, PARKED), (WATCHED, ANNOUNCED)}


def test_a_batch_never_takes_records_again_and_ends() -> None:
    assert all(OPEN not in targets for targets in LIFE_MOVES.values())
    assert {life for life, targets in LIFE_MOVES.items() if not targets} == {CLOSED, ABANDONED}


def test_compiled_code_has_the_same_numbers() -> None:
    assert differences(states) == {}
    known = {name for name, value in vars(states).items() if name.isupper() and isinstance(value, int)}
    assert set(declared_enums(states)) == known
