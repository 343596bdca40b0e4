from __future__ import annotations

import logging

import pytest

from forebay._network.connection_states import NodeState, State
from forebay._network.reasons import describe_loss, loss_error
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
