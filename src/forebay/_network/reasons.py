"""Why a node cannot be used: the errors and log lines for lost, overdue and unready connections."""

from __future__ import annotations

import logging

from forebay._network.connection_states import NodeState, State
from forebay._protocol.versions import api_name
from forebay.errors import (
    AuthenticationError,
    DisconnectError,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    UnsupportedVersionError,
)
from forebay.model import Node

MAY_BE = (
    "It may expect another security.protocol, may not be Kafka, or something between here and there may cut connections"
)
MAY_ASK = (
    "If security.protocol names no SASL here, this listener may ask for a SASL login: it ends connections without one"
)
_ABOUT_LOGINS = {State.AUTHENTICATING: " (amid the SASL authentication)"}


def loss_error(state: NodeState, cause: BaseException | None) -> KafkaError:
    """The error of a connection that ended by itself, or could not be made.

    Args:
        state: as it was before the loss.
        cause: None if it is unknown.
    """
    if isinstance(cause, (AuthenticationError, UnsupportedVersionError, ProtocolError)):
        return cause
    what = "Cannot connect to" if state.state is State.CONNECTING else "Disconnected from"
    hint = f" ({MAY_BE})" if state.state is State.CHECKING_API_VERSIONS else _ABOUT_LOGINS.get(state.state, "")
    hint = f" ({MAY_ASK})" if _is_first_request(state) else hint
    error = DisconnectError(f"{what} {state.node}" + (f": {cause}" if cause is not None else "") + hint)
    error.__cause__ = cause
    return error


def _is_first_request(state: NodeState) -> bool:
    """Whether a bootstrap server ended the connection instead of an answer: of metadata, or of a producer id.

    A listener with SASL names its versions to everybody, and ends the connection at the next request without a login.
    """
    if state.state is not State.READY or state.node.id >= 0 or state.connection is None:
        return False
    return bool(state.connection.in_flight.waiting())


def timeout_error(state: NodeState) -> KafkaTimeoutError:
    """The error of a connection attempt, or of a request, that is overdue."""
    if state.state is State.CONNECTING:
        race = state.race
        what = "its host name was not resolved" if race is None else "no connection"
        tried = "" if race is None else f" ({race.describe(state.addresses.left)})"
        return KafkaTimeoutError(
            f"Connection setup to {state.node} timed out: {what} within {state.setup_timeout_ms:.0f} ms{tried}"
        )
    overdue = min(state.connection.in_flight.waiting(), key=lambda request: request.deadline)
    what = f"{api_name(overdue.api_key)} request to {state.node}"
    return KafkaTimeoutError(f"{what} was not answered within {overdue.timeout_ms:.0f} ms")


def describe_loss(state: NodeState, error: KafkaError, timed_out: bool) -> tuple[int, str, str]:
    """Log level, kind and text of a log line; a kind is not repeated for the same node.

    Args:
        state: as it was before the loss.
        timed_out: a request was overdue.
    """
    node = state.node
    who = f"bootstrap server {node.host}:{node.port}" if node.id < 0 else f"node {node}"
    reason = error.__cause__ or error
    if isinstance(error, AuthenticationError):
        return logging.ERROR, "authentication", f"Connection to {who} failed authentication: {error}"
    if isinstance(error, ProtocolError):
        return logging.ERROR, "protocol", f"Connection to {who} closed: {_without_node(str(error), node)}"
    if state.state is State.CONNECTING:
        return (
            logging.WARNING,
            "connect",
            f"Connection to {who} could not be established, it may be down: {reason}",
        )
    if state.state is State.AUTHENTICATING:
        return logging.WARNING, "sasl", f"Connection to {who} ended amid the SASL authentication: {reason}"
    if state.state is State.CHECKING_API_VERSIONS:
        text = f"Connection to {who} ended before the broker named its versions: {reason}. {MAY_BE}"
        return logging.WARNING, "handshake", text
    if timed_out:
        return logging.WARNING, "timeout", f"Disconnecting from {who}: {error}"
    hint = f". {MAY_ASK}" if _is_first_request(state) and MAY_ASK not in str(reason) else ""
    return logging.INFO, "disconnected", f"Lost the connection to {who}: {reason}{hint}"


def describe_unready(state: NodeState | None, now: float) -> str:
    """Why no request can be sent to a node.

    Args:
        state: None if there was never a connection, nor an attempt at one.
    """
    if state is None:
        return "never connected"
    if state.state is State.READY:
        if now < state.throttled_until:
            return f"throttled for another {state.throttled_until - now:.0f} ms"
        return f"{state.connection.in_flight.count} request(s) without an answer"
    if state.last_error is not None:
        return state.last_error.message
    return "not connected" if state.state is State.DISCONNECTED else "being connected"


def _without_node(text: str, node: Node) -> str:
    return text.removeprefix(f"{node}: ")
