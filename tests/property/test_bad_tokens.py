"""OAUTHBEARER and tokens under damaged answers: each ends, in bounded time, as an error or as what it was."""

from __future__ import annotations

import base64
import json
import random
import struct

import pytest

from forebay._network.oidc import read_answer, with_secret
from forebay._network.sasl.mechanism import Blocking
from forebay._network.sasl.oauthbearer import OAuthBearer
from forebay._network.tokens import Refresh, Token, Tokens, checked_jwt, given_token
from tests.property.frames import damaged, printed_seed
from tests.property.test_bad_logins import (
    CASES,
    PASSWORD,
    REFUSED,
    TAKEN,
    TEXTS,
    Ask,
    run_login,
    sasl_answer,
    try_all,
)


@pytest.fixture(scope="module")
def dice() -> random.Random:
    return random.Random(printed_seed())


WALL = 1_700_000_000_000
REFUSAL = b'{"status":"invalid_token","scope":"kafka","openid-configuration":"x"}'


def coded(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


JWT = ".".join((coded({"alg": "RS256"}), coded({"sub": "alice", "exp": WALL / 1000 + 60, "iat": 1, "x": [1]}), "c2ln"))
REQUEST = with_secret("alice", PASSWORD, None, False)


def bearer() -> OAuthBearer:
    tokens = Tokens(lambda: Token("abc", WALL + 60_000.0), "the token", Refresh(), lambda: WALL, lambda: 0.5)
    work = tokens.wanted()
    assert isinstance(work, Blocking)
    work.run()
    tokens.settle()
    return OAuthBearer(tokens, "a provider", {})


def oauth_case(dice: random.Random) -> str:
    endless = dice.random() < 0.3

    def reply(request: Ask, number: int) -> bytes:
        if number == 0:
            return struct.pack(">hi", 0, 0)
        token = damaged(REFUSAL, dice) if number == 1 or endless else b""
        frame = sasl_answer(token, dice.choice((0, 0, 58)), dice.choice(TEXTS), dice.choice((0, -1, 2**63 - 1)))
        return damaged(frame, dice) if dice.random() < 0.5 else frame

    return run_login(bearer(), reply)


def token_case(dice: random.Random) -> str:
    kind = dice.randrange(3)
    if kind == 0:
        body = json.dumps({"access_token": JWT, "expires_in": dice.choice((-1, "x", 300))}).encode()
        value = read_answer(dice.choice((200, 201, 302, 401, 503)), damaged(body, dice), REQUEST, "https://h/t")
        assert value.strip() == value != ""
        return TAKEN
    value = damaged(JWT.encode(), dice).decode("latin-1")
    token = checked_jwt(value, "sub", WALL) if kind == 1 else given_token(value, "a provider", WALL)
    assert token.value.isascii() and (token.expires_ms is None or token.expires_ms > WALL)
    return TAKEN


@pytest.mark.sized
def test_refused_tokens(dice: random.Random) -> None:
    ends = try_all("oauth", oauth_case, dice)
    assert ends[REFUSED] > CASES["oauth"] // 2


@pytest.mark.sized
def test_tokens_and_the_answers_that_hold_them(dice: random.Random) -> None:
    ends = try_all("tokens", token_case, dice)
    assert ends[REFUSED] > CASES["tokens"] // 10 and ends[TAKEN] > CASES["tokens"] // 60
