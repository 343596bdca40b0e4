"""Every mechanism has what the handshake asks of one."""

from __future__ import annotations

import pytest

from forebay._network.sasl.login import Login
from forebay._network.sasl.mechanism import MAX_TOKEN, Blocking, Mechanism
from forebay._network.sasl.oauthbearer import OAuthBearer
from forebay._network.sasl.plain import Plain
from forebay._network.sasl.scram import HASHES, Scram
from forebay._network.tokens import Refresh, Token, Tokens
from forebay.config import Secret
from forebay.config._security_rules import Credentials

LOGIN = Login(lambda: Credentials("user", Secret("word")))
MECHANISMS: list[Mechanism] = [
    Plain(LOGIN),
    *(Scram(name, LOGIN, lambda size: bytes(size)) for name in HASHES),
    OAuthBearer(Tokens(lambda: Token("word", 10.0), "x", Refresh(), lambda: 0, lambda: 0), "the user's provider", {}),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_it_names_itself_and_begins_with_a_token(mechanism: Mechanism) -> None:
    assert mechanism.name in ("PLAIN", "OAUTHBEARER", *HASHES)
    assert "user" in mechanism.who and "word" not in mechanism.who
    exchange = mechanism.exchange("broker")
    first = next(exchange)
    if isinstance(first, Blocking):
        first.run()
        first = exchange.send(first.result)
    assert isinstance(first, bytes) and 0 < len(first) < MAX_TOKEN


def test_work_shows_neither_its_arguments_nor_its_result() -> None:
    work = Blocking("a token", lambda: "canary")
    work.run()
    assert work.done and work.result == "canary" and "canary" not in repr(work)


def test_work_that_is_given_up_is_not_run() -> None:
    work = Blocking("a token", lambda: 1)
    work.fail(ValueError("closed"))
    work.run()
    assert work.result is None and isinstance(work.error, ValueError)
