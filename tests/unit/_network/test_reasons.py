from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from forebay._network.connection_states import NodeState, State
from forebay._network.reasons import MAY_ASK, describe_loss, loss_error
from forebay._protocol.versions import ApiKey
from forebay.errors import (
    AuthenticationError,
    DisconnectError,
    KafkaError,
    KafkaTimeoutError,
    NetworkError,
    ProtocolError,
    UnsupportedVersionError,
)
from forebay.model import Node


@pytest.mark.parametrize(
    ("state", "error", "timed_out", "level", "kind"),
    [
        (State.CONNECTING, DisconnectError("refused"), False, logging.WARNING, "connect"),
        (State.CHECKING_API_VERSIONS, DisconnectError("eof"), False, logging.WARNING, "handshake"),
        (State.CHECKING_API_VERSIONS, KafkaTimeoutError("late"), True, logging.WARNING, "handshake"),
        (State.READY, DisconnectError("eof"), False, logging.INFO, "disconnected"),
        (State.READY, KafkaTimeoutError("late"), True, logging.WARNING, "timeout"),
        (State.READY, ProtocolError("odd bytes"), False, logging.ERROR, "protocol"),
        (State.CONNECTING, AuthenticationError("no"), False, logging.ERROR, "authentication"),
    ],
)
def test_words(state: State, error: KafkaError, timed_out: bool, level: int, kind: str) -> None:
    node = NodeState(Node(4, "broker", 9092), 0, 0)
    node.state = state
    found_level, found_kind, text = describe_loss(node, error, timed_out)
    assert (found_level, found_kind) == (level, kind)
    assert "broker:9092 (id 4)" in text
    assert str(error) in text


def test_bootstrap_servers_are_named_without_their_made_up_id() -> None:
    node = NodeState(Node(-1, "broker", 9092), 0, 0)
    node.state = State.CONNECTING
    text = describe_loss(node, DisconnectError("refused"), False)[2]
    assert "bootstrap server broker:9092" in text
    assert "-1" not in text


@pytest.mark.parametrize(
    ("state", "cause", "text"),
    [
        (State.CONNECTING, NetworkError("refused"), "Cannot connect to broker:9092 (id 4): refused"),
        (State.READY, NetworkError("reset"), "Disconnected from broker:9092 (id 4): reset"),
        (State.READY, None, "Disconnected from broker:9092 (id 4)"),
    ],
)
def test_a_loss_that_nobody_explains_better_is_a_disconnect(
    state: State, cause: BaseException | None, text: str
) -> None:
    node = NodeState(Node(4, "broker", 9092), 0, 0)
    node.state = state
    error = loss_error(node, cause)
    assert (type(error), str(error), error.__cause__) == (DisconnectError, text, cause)


@pytest.mark.parametrize("kind", [AuthenticationError, UnsupportedVersionError, ProtocolError])
def test_what_says_more_than_a_disconnect_stays_as_it_is(kind: type[KafkaError]) -> None:
    error = kind("why")
    assert loss_error(NodeState(Node(4, "broker", 9092), 0, 0), error) is error


class Waiting:
    """A connection with requests that have no answer."""

    def __init__(self, *keys: int) -> None:
        self.in_flight = self
        self._keys = keys

    def waiting(self) -> list[Any]:
        return [SimpleNamespace(api_key=key) for key in self._keys]


@pytest.mark.parametrize("cause", [None, NetworkError("reset")])
@pytest.mark.parametrize(
    ("node", "state", "keys", "told"),
    [
        (-1, State.READY, (ApiKey.METADATA,), True),
        (-1, State.READY, (), False),
        (-1, State.READY, (ApiKey.INIT_PRODUCER_ID,), True),
        (4, State.READY, (ApiKey.METADATA,), False),
        (-1, State.AUTHENTICATING, (ApiKey.METADATA,), False),
    ],
)
def test_a_listener_that_asks_for_a_login_is_named_in_the_error_and_in_the_log(
    node: int, state: State, keys: tuple[int, ...], told: bool, cause: BaseException | None
) -> None:
    """A listener with SASL answers what its versions are, and ends the connection at the next request."""
    lost = NodeState(Node(node, "broker", 9092), 0, 0)
    lost.state, lost.connection = state, Waiting(*keys)
    error = loss_error(lost, cause)
    assert (MAY_ASK in str(error)) is told and "security.protocol" in MAY_ASK
    text = describe_loss(lost, error, False)[2]
    assert text.count(MAY_ASK) == (1 if told else 0)
