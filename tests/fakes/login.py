"""A producer whose broker asks who it is, and a provider of tokens, for ``World``."""

from __future__ import annotations

from typing import Any

from forebay._network.connection_states import State
from tests.fakes.sasl import HandDrivenHelper, SaslBroker
from tests.fakes.world import World


class Login(World):
    """A producer whose broker asks who it is.

    Args:
        helper: does its work when ``settle`` has nothing else to do, unless it is ``held``.
    """

    def __init__(self, helper: HandDrivenHelper | None, *, lifetime_ms: int = 0, **config: Any) -> None:
        self.helper = helper
        self.held = False
        self.accepted: set[bytes] | None = None
        self.lifetime_ms = lifetime_ms
        self.sasl: SaslBroker | None = None
        super().__init__(known=False, security_protocol="SASL_PLAINTEXT", delivery_timeout_ms=600_000, **config)
        self.sasl = SaslBroker(self.cluster.brokers[0], self.judge, lifetime_ms)

    def judge(self, token: bytes) -> tuple[int, str | None, bytes]:
        taken = self.accepted is None or token in self.accepted
        return (0, None, b"") if taken else (58, "Authentication failed", b"")

    def settle(self, turns: int = 8) -> None:
        super().settle(turns)
        while self.helper is not None and not self.held and self.helper.work_off():
            super().settle(turns)

    def learned(self) -> Login:
        self.learn("test")
        self.learn("test")
        return self

    @property
    def state(self) -> State:
        return next(iter(self.parts.client.states.nodes.values())).state


class Provider:
    """Tokens that last for ten minutes; or what a test wants."""

    def __init__(self) -> None:
        self.world: Login | None = None
        self.asked = 0
        self.gives: Any = None

    def __call__(self) -> Any:
        self.asked += 1
        if isinstance(self.gives, Exception):
            raise self.gives
        if self.gives is not None:
            return self.gives
        assert self.world is not None
        return f"token-{self.asked}", self.world.clock.wall() / 1000 + 600


def oauth(helper: HandDrivenHelper, **more: Any) -> tuple[Login, Provider]:
    provider = Provider()
    world = Login(helper, sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token_provider=provider, **more)
    provider.world = world
    return world, provider
