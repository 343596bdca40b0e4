from __future__ import annotations

from typing import Any

import pytest

from forebay._network.connection_states import State
from forebay._network.sasl.login import Login
from forebay._network.sasl.mechanism import Blocking, Exchange, Mechanism
from forebay._network.sasl.plain import Plain
from forebay.config import Secret
from forebay.config._security_rules import Credentials
from forebay.errors import NetworkError, SaslAuthenticationError
from forebay.model import Node
from tests.fakes.broker import API_VERSIONS, PRODUCE, Received
from tests.fakes.sasl import HandDrivenHelper, SaslBroker

from .world import World


def test_invalid_api_versions_request() -> None:
    """M testInvalidApiVersionsRequest: INVALID_REQUEST ends the connection."""
    world = World()
    world.broker().script[API_VERSIONS] = lambda request: world.broker().answer_versions(request, error=42)
    world.settle()
    assert not world.client.is_ready(world.node(), world.now)
    assert not world.broker().links[0].open
    assert world.client.in_flight_count() == 0


def test_api_versions_request() -> None:
    """M testApiVersionsRequest: version 4 first, then ready, and the ranges are known."""
    world = World()
    world.until_ready()
    assert [request.version for request in world.broker().of(API_VERSIONS)] == [4, 4]  # bootstrap, then node 1
    versions = world.client.versions.get(1)
    assert versions is not None
    assert versions.ranges[PRODUCE] == (3, 13)


@pytest.mark.parametrize(("ranges", "second"), [({API_VERSIONS: (0, 2)}, 2), ({}, 0)])
def test_unsupported_api_versions_request(ranges: dict[int, tuple[int, int]], second: int) -> None:
    """M testUnsupportedApiVersionsRequestWithVersionProvidedByTheBroker, WithoutVersionProvided: 2, else 0."""
    world = World()
    broker = world.broker()

    def answer(request: Received) -> None:
        if request.version == 4:
            broker.answer_versions(request, error=35, ranges=ranges)
        else:
            broker.answer_versions(request)

    broker.script[API_VERSIONS] = answer
    world.settle()
    assert [request.version for request in broker.of(API_VERSIONS)][:2] == [4, second]
    assert world.client.is_ready(world.cluster.bootstrap()[0], world.now) or world.metadata.version == 1


def test_version_check_that_is_never_answered() -> None:
    world = World()
    world.broker().held.add(API_VERSIONS)
    world.client.ready(world.node(), world.now)
    world.poll()
    world.poll()
    world.clock.advance(1001)
    world.poll()
    assert world.client.states.failed(world.node().id)


class Slow(Mechanism):
    """A mechanism whose only token takes work."""

    name = "SLOW"
    who = "user 'slow'"

    def __init__(self) -> None:
        self.token: bytes | Exception = b"token"
        self.text = ""
        self.again_at = float("inf")
        self.due: Blocking | None = None

    def exchange(self, host: str) -> Exchange:
        yield (yield Blocking("the slow token", self._fetch)) + self.text.encode()

    def renewal(self, now: float) -> tuple[Blocking | None, float]:
        return self.due, self.again_at

    def _fetch(self) -> bytes:
        if isinstance(self.token, Exception):
            raise self.token
        return self.token


class SlowWorld(World):
    """One broker that wants SLOW, and the helper thread by hand."""

    def __init__(self, *, lifetime_ms: int = 0, code: int = 0) -> None:
        self.mechanism, self.helper = Slow(), HandDrivenHelper()
        super().__init__(sasl=self.mechanism, helper=self.helper, bootstrap=[Node(1, "127.0.0.1", 9001)])
        self.sasl = SaslBroker(self.broker(), lambda token: (code, None, b""), lifetime_ms)

    def state(self) -> State:
        found = self.client.states.get(1)
        assert found is not None
        return found.state


def test_a_handshake_waits_for_the_helper_and_is_woken() -> None:
    world = SlowWorld()
    world.settle()
    assert len(world.helper.tasks) == 1 and world.sasl.mechanisms == [], "nothing is asked before the token is there"
    assert world.state() is State.AUTHENTICATING
    assert world.helper.work_off() == 1
    world.until_ready()
    assert world.sasl.mechanisms == ["SLOW"] and world.sasl.tokens == [b"token"]


@pytest.mark.parametrize(
    ("error", "kind", "state"),
    [
        (NetworkError("no token: nobody answers"), NetworkError, State.DISCONNECTED),
        (SaslAuthenticationError("no token: refused"), SaslAuthenticationError, State.AUTHENTICATION_FAILED),
        (ValueError("rubbish"), NetworkError, State.DISCONNECTED),
    ],
)
def test_work_that_fails_ends_the_connection(error: Exception, kind: type[Exception], state: State) -> None:
    world = SlowWorld()
    world.mechanism.token = error
    world.settle()
    world.helper.work_off()
    world.settle()
    assert world.state() is state
    assert isinstance(world.client.states.last_error(1), kind)
    assert str(error.args[0]) in str(world.client.states.last_error(1))


def test_an_error_that_nobody_expects_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    """Else it would wait for ever; and the repr of such an error may hold a password."""
    world = SlowWorld()
    world.settle()
    world.mechanism.text = "canary\udcff"
    world.helper.work_off()
    world.settle()
    error = world.client.states.last_error(1)
    assert world.state() is State.DISCONNECTED
    assert isinstance(error, NetworkError) and "the handshake failed" in str(error)
    assert "canary" not in str(error) + caplog.text


def test_work_that_hangs_ends_the_connection_in_time() -> None:
    world = SlowWorld()
    world.settle()
    world.clock.advance(1001)
    world.settle()
    error = world.client.states.last_error(1)
    assert isinstance(error, NetworkError) and "the slow token has not come within request.timeout.ms" in str(error)
    world.helper.work_off()
    world.settle()
    assert world.state() is State.DISCONNECTED, "what comes late opens nothing"
    world.clock.advance(10_000)
    world.client.ready(world.node(), world.now)
    world.settle()
    world.helper.work_off()
    world.until_ready()


def test_a_connection_lost_meanwhile_is_left_alone() -> None:
    world = SlowWorld()
    world.settle()
    world.broker().drop()
    world.settle()
    world.helper.work_off()
    world.settle()
    assert world.state() is State.DISCONNECTED and world.sasl.tokens == []


def ready_session(lifetime_ms: int) -> SlowWorld:
    world = SlowWorld(lifetime_ms=lifetime_ms)
    world.settle()
    world.helper.work_off()
    world.until_ready()
    return world


def test_requests_go_on_while_a_session_waits_for_its_next_token() -> None:
    world = ready_session(60_000)
    world.echo()
    world.clock.advance(60_000 * 0.9 + 1)
    world.settle()
    assert len(world.helper.tasks) == 1 and world.state() is State.READY
    sent = world.send()
    world.settle()
    assert sent.response.body == b"answer"
    world.helper.work_off()
    world.settle()
    assert world.state() is State.READY and world.sasl.tokens == [b"token", b"token"]


def test_a_session_goes_on_without_a_token_and_asks_again() -> None:
    world = ready_session(60_000)
    world.clock.advance(60_000 * 0.9 + 1)
    world.mechanism.token = NetworkError("no token: nobody answers")
    world.settle()
    world.helper.work_off()
    world.settle()
    assert world.state() is State.READY and len(world.sasl.tokens) == 1
    world.mechanism.token = b"next"
    world.clock.advance(10_001)
    world.settle()
    world.helper.work_off()
    world.settle()
    assert world.state() is State.READY and world.sasl.tokens == [b"token", b"next"]


def test_credentials_are_renewed_while_nobody_logs_in() -> None:
    world = ready_session(0)
    world.mechanism.again_at = world.now + 5000
    world.mechanism.due = Blocking("the renewal", lambda: None)
    world.clock.advance(300_001)  # whatever the client looks for next
    world.settle()
    assert world.helper.tasks == [world.mechanism.due], "begun once"
    world.mechanism.due = None
    world.helper.work_off()
    world.settle()
    assert world.helper.tasks == []


def test_an_answer_that_refuses_ends_the_connection() -> None:
    world = SlowWorld(code=58)
    world.settle()
    world.helper.work_off()
    world.settle()
    assert world.state() is State.AUTHENTICATION_FAILED
    assert "user 'slow'" in str(world.client.states.last_error(1))


class Passwords(World):
    """A broker that takes one password, by PLAIN."""

    def __init__(self, **options: Any) -> None:
        self.accepted = b"\0alice\0right"
        self.login = Login(lambda: Credentials("alice", Secret("wrong")))
        super().__init__(sasl=Plain(self.login), bootstrap=[Node(1, "127.0.0.1", 9001)], **options)
        self.sasl = SaslBroker(self.broker(), self.judge)

    def set_credentials(self, password: str) -> None:
        self.login.replace(Credentials("alice", Secret(password)))
        self.client.states.credentials = object()

    def judge(self, token: bytes) -> tuple[int, str | None, bytes]:
        return (0, None, b"") if token == self.accepted else (58, "no", b"")

    def state(self) -> State:
        found = self.client.states.get(1)
        assert found is not None
        return found.state


def test_other_credentials_are_tried_at_once() -> None:
    world = Passwords()
    world.settle()
    assert world.state() is State.AUTHENTICATION_FAILED
    assert world.client.states.connection_delay(1, world.now) > 0
    world.set_credentials("right")
    assert world.client.states.connection_delay(1, world.now) == 0
    world.until_ready()
    assert world.sasl.tokens[-1] == world.accepted


def test_a_refusal_of_the_new_ones_waits_again() -> None:
    world = Passwords()
    world.settle()
    for _ in range(3):
        world.set_credentials("wrong too")
        world.client.ready(world.node(), world.now)
        world.settle()
        assert world.state() is State.AUTHENTICATION_FAILED
        assert world.client.states.connection_delay(1, world.now) > 0


def test_a_file_that_has_changed_is_tried_at_once() -> None:
    stats = ["old"]
    world = Passwords(files=lambda: stats[0], reconnect_backoff_ms=30_000, reconnect_backoff_max_ms=30_000)
    world.settle()
    assert world.state() is State.AUTHENTICATION_FAILED
    world.clock.advance(1001)
    world.settle()
    assert world.client.states.connection_delay(1, world.now) > 20_000
    stats[0] = "new"
    world.login.replace(Credentials("alice", Secret("right")))
    world.clock.advance(1001)
    world.settle()
    world.until_ready()
