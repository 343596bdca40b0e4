"""The table of states: every pair of states, against Java's list of legal sources."""

from __future__ import annotations

import itertools

import pytest

from forebay._transactions.state import SOURCES, State, move
from forebay.errors import IllegalStateError

# Written out again by hand, from the other side: where each state may go, apart from FATAL_ERROR.
TARGETS = {
    "UNINITIALIZED": "INITIALIZING",
    "INITIALIZING": "READY ABORTABLE_ERROR",
    "READY": "UNINITIALIZED IN_TRANSACTION",
    "IN_TRANSACTION": "UNINITIALIZED COMMITTING_TRANSACTION ABORTING_TRANSACTION ABORTABLE_ERROR",
    "COMMITTING_TRANSACTION": "READY ABORTABLE_ERROR",
    "ABORTING_TRANSACTION": "INITIALIZING READY",
    "ABORTABLE_ERROR": "UNINITIALIZED ABORTING_TRANSACTION ABORTABLE_ERROR",
    "FATAL_ERROR": "",
}


@pytest.mark.parametrize(("source", "target"), list(itertools.product(State, State)))
def test_every_pair(source: State, target: State) -> None:
    if target is State.FATAL_ERROR or target.value in TARGETS[source.value].split():
        assert move(source, target) is target
    else:
        wanted = f"from state {source.value} to state {target.value}; allowed: .*FATAL"
        with pytest.raises(IllegalStateError, match=wanted):
            move(source, target)


def test_every_state_has_a_row() -> None:
    assert set(SOURCES) == set(State)
