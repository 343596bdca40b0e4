"""Logins over a producer's life: tokens that end while it is idle, bad providers, credentials that are mended."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import pytest

from forebay._network import credentials
from forebay._network.connection_states import State
from forebay.errors import IllegalArgumentError, IllegalStateError, KafkaError, NetworkError, SaslAuthenticationError
from forebay.producer import KafkaProducer
from tests.fakes.broker import INIT_PRODUCER_ID
from tests.fakes.login import Login, oauth
from tests.fakes.sasl import HandDrivenHelper
from tests.fakes.world import World

RIGHT = b"\0alice\0right"
MINUTE = 60_000.0


@pytest.fixture
def helper(monkeypatch: pytest.MonkeyPatch) -> HandDrivenHelper:
    made = HandDrivenHelper()
    monkeypatch.setattr(credentials, "Helper", lambda name: made)
    return made


def last_error(world: World) -> KafkaError | None:
    """Why the first broker could not be reached or did not let us in."""
    return next((state.last_error for state in world.parts.client.states.nodes.values()), None)


def test_a_record_arrives_with_a_token(helper: HandDrivenHelper) -> None:
    world, provider = oauth(helper)
    world.learned()
    world.send()
    world.until(lambda: world.values() == [b"v"])
    assert world.sasl is not None and world.sasl.tokens[0] == b"n,,\x01auth=Bearer token-1\x01\x01"
    assert provider.asked == 1, "all connections share it"


def test_a_token_is_renewed_while_the_producer_is_idle(helper: HandDrivenHelper) -> None:
    world, provider = oauth(helper, connections_max_idle_ms=-1, lifetime_ms=600_000)
    world.learned()
    world.run(25 * MINUTE, step=1000)
    assert provider.asked >= 4
    assert world.sasl is not None and len(set(world.sasl.tokens)) >= 3, "sessions are authenticated again"
    world.learned()
    world.send()
    world.until(lambda: world.values() == [b"v"])


@pytest.mark.parametrize(
    ("gives", "kind"),
    [
        (ValueError("away"), NetworkError),
        (SaslAuthenticationError("refused"), SaslAuthenticationError),
        (7, SaslAuthenticationError),
        ("not a token", SaslAuthenticationError),
    ],
)
def test_a_provider_that_has_no_token_and_is_mended(
    helper: HandDrivenHelper, gives: Any, kind: type[KafkaError]
) -> None:
    world, provider = oauth(helper, idempotent=True)
    provider.gives = gives
    world.metadata.add_topic("test", world.now)
    world.run(5000, step=100)
    error = last_error(world)
    assert (isinstance(error, kind) and "no token" in str(error)) or "refused" in str(error)
    provider.gives = None
    world.run(40_000, step=100)
    world.learned()
    world.send()
    world.until(lambda: world.values() == [b"v"])


def test_a_provider_that_hangs_and_comes_back(helper: HandDrivenHelper) -> None:
    world, _ = oauth(helper)
    world.held = True
    world.metadata.add_topic("test", world.now)
    world.run(12_000, step=100)
    error = last_error(world)
    assert error is not None and "has not come within request.timeout.ms" in str(error)
    assert len(helper.tasks) == 1, "attempts share what hangs"
    world.held = False
    world.run(5000, step=100)
    world.learned()
    world.send()
    world.until(lambda: world.values() == [b"v"])


def test_a_provider_that_hangs_is_given_up_in_time_also_if_something_else_was_due_before(
    helper: HandDrivenHelper,
) -> None:
    world, _ = oauth(helper, socket_connection_setup_timeout_ms=1000, socket_connection_setup_timeout_max_ms=1000)
    world.held = True
    lost: list[float] = []
    world.parts.client.states.on_loss = lambda state, error: lost.append(world.now)
    world.metadata.add_topic("test", world.now)
    for _ in range(40):
        world.wait()
    assert len(lost) >= 3
    assert all(later - earlier < 6000 for earlier, later in pairwise(lost))


def test_a_provider_that_returns_after_the_end(helper: HandDrivenHelper) -> None:
    world, provider = oauth(helper)
    world.held = True
    world.metadata.add_topic("test", world.now)
    world.settle()
    world.parts.client.close(world.now)
    helper.work_off()
    assert provider.asked == 1 and world.in_flight == 0


def test_a_provider_that_returns_after_a_fork(helper: HandDrivenHelper) -> None:
    world, provider = oauth(helper)
    world.held = True
    world.metadata.add_topic("test", world.now)
    world.settle()
    world.parts.client.close_after_fork()
    helper.work_off()
    assert provider.asked == 1


def passwords(**more: Any) -> Login:
    world = Login(None, sasl_mechanism="PLAIN", sasl_username="alice", sasl_password="wrong", **more)
    world.accepted = {RIGHT}
    return world


def test_the_producer_id_is_asked_for_again_after_a_login_that_was_mended() -> None:
    """KAFKA-20237: in Java the request is lost with the failed login, and the producer is stuck for ever."""
    world = passwords(idempotent=True)
    world.metadata.add_topic("test", world.now)
    world.run(3000, step=100)
    assert world.state is State.AUTHENTICATION_FAILED
    world.producer.set_sasl_credentials("alice", "right")
    world.run(2000, step=100)
    world.learned()
    world.send()
    world.until(lambda: world.values() == [b"v"], limit_ms=5000)
    assert len(world.cluster.brokers[0].of(INIT_PRODUCER_ID)) == 1
    (batch,) = world.cluster.logs["test", 0].batches
    assert (batch.producer_epoch, batch.base_sequence) == (0, 0)


def test_records_that_wait_are_sent_once_the_password_is_mended() -> None:
    world = passwords(idempotent=True)
    world.accepted = {b"\0alice\0wrong"}
    world.learned()
    world.accepted = {RIGHT}
    world.cluster.brokers[0].drop()
    future = world.send()
    world.run(70_000, step=500)
    assert world.state is State.AUTHENTICATION_FAILED and not future.done()
    world.producer.set_sasl_credentials("alice", "right")
    world.until(future.done, limit_ms=2000, step=50)
    assert world.values() == [b"v"]


def test_what_cannot_be_set() -> None:
    world = passwords()
    with pytest.raises(IllegalArgumentError, match="NUL"):
        world.producer.set_sasl_credentials("alice", "a\0b")
    with pytest.raises(TypeError):
        world.producer.set_sasl_credentials("alice", b"bytes")  # type: ignore[arg-type]
    with pytest.raises(IllegalStateError, match="username"):
        World(known=False).producer.set_sasl_credentials("alice", "x")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_password_that_is_no_text_is_refused_in_one_sentence(
    helper: HandDrivenHelper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, mechanism: str
) -> None:
    """The environment's bytes may be none; an error of the encoding would hold the password."""
    monkeypatch.setenv("FOREBAY_PASSWORD", "canary\udcff")
    placeholder: dict[str, Any] = {"sasl_password": "${env:FOREBAY_PASSWORD}", "config_providers": "env"}
    world = Login(helper, sasl_mechanism=mechanism, sasl_username="alice", **placeholder)
    world.metadata.add_topic("test", world.now)
    world.run(2000, step=100)
    error = last_error(world)
    assert isinstance(error, SaslAuthenticationError) and "${env:FOREBAY_PASSWORD}: it is no text in UTF-8" in str(
        error
    )
    assert "canary" not in caplog.text + repr(error) + repr(error.__cause__)
    with pytest.raises(IllegalArgumentError, match="lone surrogate"):
        world.producer.set_sasl_credentials("alice", "canary\udcff")


def test_a_placeholder_is_read_at_each_login(helper: HandDrivenHelper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOREBAY_PASSWORD", raising=False)
    placeholder: dict[str, Any] = {"sasl_password": "${env:FOREBAY_PASSWORD}", "config_providers": "env"}
    world = Login(helper, sasl_mechanism="PLAIN", sasl_username="alice", **placeholder)
    world.accepted = {RIGHT}
    world.metadata.add_topic("test", world.now)
    world.run(2000, step=100)
    error = last_error(world)
    assert isinstance(error, SaslAuthenticationError) and "FOREBAY_PASSWORD" in str(error)
    monkeypatch.setenv("FOREBAY_PASSWORD", "right")
    world.run(40_000, step=100)
    world.learned()
    world.send()
    world.until(lambda: world.values() == [b"v"])
    assert b"right" not in pickle.dumps(world.producer.config)
    assert isinstance(world.producer, KafkaProducer)
