"""warming: what cannot be had ends a request at once."""

from __future__ import annotations

from typing import Any

from forebay._sender.warming import WarmUp
from forebay.errors import AuthenticationError, ClusterAuthorizationError
from tests.fakes.world import World


class Refusing:
    """A client whose node refuses the login, or a gate that can get no id."""

    def __init__(self, error: AuthenticationError | None = None) -> None:
        self.error = error
        self.states = self
        self.tried: list[int] = []

    def is_ready(self, node_id: int) -> bool:
        return self.error is None

    def failed(self, node_id: int) -> bool:
        return True

    def authentication_error(self, node_id: int) -> AuthenticationError | None:
        return self.error

    def ready(self, node: Any, now: float) -> bool:
        self.tried.append(node.id)
        return False

    def poll_delay(self, node_id: int, now: float) -> float:
        return 50.0


def test_a_refused_login_ends_it_at_once() -> None:
    world = World()
    client: Any = Refusing(AuthenticationError("no"))
    request = WarmUp(["test"], client, world.metadata, None)
    request.turn(world.now)
    assert request.result.done and isinstance(request.result.error, AuthenticationError)
    assert request.result.error is not client.error  # each reader raises its own
    assert client.tried == []


def test_an_id_that_is_refused_for_good_ends_it() -> None:
    world = World(idempotent=True, known=False)
    world.learn("test")
    gate: Any = type("Gate", (), {"has_producer_id": False, "fatal_error": ClusterAuthorizationError("no id")})()
    request = WarmUp(["test"], Refusing(), world.metadata, gate)  # type: ignore[arg-type]
    request.turn(world.now)
    assert isinstance(request.result.error, ClusterAuthorizationError)
