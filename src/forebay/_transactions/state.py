"""The states of a producer's identity and of its transaction, and the moves between them, as one table.

The states and moves are those of the Java client, and one more: ``detach_transaction`` leaves an open transaction to
another process, which leads from ``IN_TRANSACTION`` to ``UNINITIALIZED``.  A producer without transactions only has
``UNINITIALIZED``, ``INITIALIZING``, ``READY``, ``ABORTABLE_ERROR`` (a temporary refusal, before ``UNINITIALIZED``) and
``FATAL_ERROR``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from forebay.errors import IllegalStateError


class State(Enum):
    """The producer's state; the value is the name that messages show."""

    UNINITIALIZED = "UNINITIALIZED"
    INITIALIZING = "INITIALIZING"
    READY = "READY"
    IN_TRANSACTION = "IN_TRANSACTION"
    COMMITTING_TRANSACTION = "COMMITTING_TRANSACTION"
    ABORTING_TRANSACTION = "ABORTING_TRANSACTION"
    ABORTABLE_ERROR = "ABORTABLE_ERROR"
    FATAL_ERROR = "FATAL_ERROR"


SOURCES: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.UNINITIALIZED: frozenset({State.READY, State.ABORTABLE_ERROR, State.IN_TRANSACTION}),
        State.INITIALIZING: frozenset({State.UNINITIALIZED, State.ABORTING_TRANSACTION}),
        State.READY: frozenset({State.INITIALIZING, State.COMMITTING_TRANSACTION, State.ABORTING_TRANSACTION}),
        State.IN_TRANSACTION: frozenset({State.READY}),
        State.COMMITTING_TRANSACTION: frozenset({State.IN_TRANSACTION}),
        State.ABORTING_TRANSACTION: frozenset({State.IN_TRANSACTION, State.ABORTABLE_ERROR}),
        State.ABORTABLE_ERROR: frozenset(
            {State.IN_TRANSACTION, State.COMMITTING_TRANSACTION, State.ABORTABLE_ERROR, State.INITIALIZING}
        ),
        State.FATAL_ERROR: frozenset(State),
    }
)
"""For each state the states before it."""


ALLOWED_CALLS: Mapping[State, str] = MappingProxyType(
    {
        State.UNINITIALIZED: "init_transactions() and close()",
        State.INITIALIZING: "close(), and init_transactions() again if it timed out",
        State.READY: "begin_transaction(), set_transactional_id() and close()",
        State.IN_TRANSACTION: (
            "send(), send_offsets_to_transaction(), commit_transaction(), abort_transaction(), detach_transaction() "
            "and close()"
        ),
        State.COMMITTING_TRANSACTION: "close(), and commit_transaction() again if it timed out",
        State.ABORTING_TRANSACTION: "close(), and abort_transaction() again if it timed out",
        State.ABORTABLE_ERROR: "abort_transaction() and close()",
        State.FATAL_ERROR: "close()",
    }
)
"""For each state the calls that are allowed, for error messages."""


def illegal_call(current: State, call: str) -> IllegalStateError:
    """The error of a call that the state does not allow."""
    return IllegalStateError(f"Cannot call {call}() in state {current.value}; allowed now: {ALLOWED_CALLS[current]}")


def move(current: State, target: State) -> State:
    """Returns ``target``, the state after the move.

    Raises:
        IllegalStateError: there is no such move; the message names both states and what is allowed.
    """
    if current in SOURCES[target]:
        return target
    allowed = ", ".join(state.value for state, sources in SOURCES.items() if current in sources)
    raise IllegalStateError(
        f"Invalid transition attempted from state {current.value} to state {target.value}; allowed: {allowed}"
    )
