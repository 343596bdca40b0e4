"""When a node's connection, or what is asked on it, is overdue, and the words for it."""

from __future__ import annotations

from forebay._network.connection_states import NodeState, State
from forebay._protocol.versions import api_name
from forebay.errors import KafkaTimeoutError

_INFINITY = float("inf")


def overdue_at(state: NodeState) -> float:
    """Monotonic ms after which the attempt, or the oldest request, has taken too long; infinite if there is none."""
    if state.state is State.CONNECTING:
        return state.last_attempt + state.setup_timeout_ms
    deadline: float = state.connection.in_flight.deadline() if state.connection is not None else _INFINITY
    return deadline


def idle_at(state: NodeState, max_idle_ms: float) -> float:
    """Monotonic ms after which the connection has not been used for too long; infinite while it is in use."""
    if max_idle_ms < 0 or not state.established or state.connection.in_flight.count:
        return _INFINITY
    unused_since: float = state.channel.last_active
    return unused_since + max_idle_ms


def timeout_error(state: NodeState) -> KafkaTimeoutError:
    """What was overdue."""
    if state.state is State.CONNECTING:
        race = state.race
        what = "its host name was not resolved" if race is None else "no connection"
        tried = "" if race is None else f" ({race.words(state.addresses.left)})"
        return KafkaTimeoutError(
            f"Connection setup to {state.node} timed out: {what} within {state.setup_timeout_ms:.0f} ms{tried}"
        )
    overdue = min(state.connection.in_flight.waiting(), key=lambda request: request.deadline)
    what = f"{api_name(overdue.api_key)} request to {state.node}"
    return KafkaTimeoutError(f"{what} was not answered within {overdue.timeout_ms:.0f} ms")
