"""Tokens: what providers may give, when the next one is fetched, and who shares it."""

from __future__ import annotations

import base64
import csv
import json
import logging
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._network.sasl.mechanism import Blocking
from forebay._network.tokens import (
    Refresh,
    Token,
    Tokens,
    ask,
    check_extensions,
    checked_jwt,
    given_token,
    read_claims,
    refresh_at,
)
from forebay.errors import ConfigError, NetworkError, SaslAuthenticationError
from forebay.testing import ManualClock

NOW = 1_700_000_000_000
# Computed by ExpiringCredentialRefreshingLogin.refreshMs of kafka-clients 4.3.0, without jitter; relative to now.
JAVAS = list(csv.reader((Path(__file__).parent / "java_refresh_times.csv").read_text().splitlines()[1:]))


def jwt(**claims: Any) -> str:
    parts = ({"alg": "none"}, {"sub": "me", "exp": NOW / 1000 + 600, **claims})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*encoded, "c2ln"))


@pytest.mark.parametrize("row", JAVAS, ids=",".join)
def test_the_next_token_is_fetched_when_java_would(row: list[str]) -> None:
    factor, period, buffer, start, end, expected = row
    refresh = Refresh(float(factor), 0.05, float(period), float(buffer))
    token = Token("t", NOW + float(end), NOW + float(start) if start else None)
    assert refresh_at(NOW, token, refresh, 0.0) == NOW + float(expected)


def test_jitter_and_tokens_without_an_end() -> None:
    assert refresh_at(NOW, Token("t", NOW + 3_600_000.0), Refresh(), 0.5) == NOW + 3_600_000 * 0.825
    assert refresh_at(NOW, Token("t"), Refresh(), 0.5) == math.inf


# -- what a provider gives


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("opaque", Token("opaque")),
        (jwt(), Token(jwt(), NOW + 600_000)),
        (("abc", NOW / 1000 + 5), Token("abc", NOW + 5000)),
        (["abc", NOW / 1000 + 5, "alice"], Token("abc", NOW + 5000, None, "alice")),
        (("abc", None, None, {"x": "y"}), Token("abc", None, None, None, {"x": "y"})),
        (("abc", NOW / 1000 + 5, "alice", None), Token("abc", NOW + 5000, None, "alice")),
    ],
)
def test_what_may_be_given(given: Any, expected: Token) -> None:
    assert given_token(given, "the provider", NOW) == expected


async def coroutine() -> str:
    return "abc"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "NoneType"),
        (b"canary", "bytes"),
        ("", "0 characters"),
        ("canary canary", "13 characters"),
        ("canary\x01", "7 characters"),
        ("canaryé", "7 characters"),
        ("c" * 600_000, "600000 characters"),
        (("canary", "soon"), "Unix seconds"),
        (("canary", True), "Unix seconds"),
        (("canary", math.nan), "Unix seconds"),
        (("canary", 10**400), "Unix seconds"),
        (("canary", -1), "ended"),
        (("canary", NOW / 1000 - 3), "ended 3 s ago"),
        (("canary", None, None, {"auth": "x"}), "extensions"),
        (("canary", None, None, {"a": "\x01"}), "extensions"),
        (("canary", None, None, 7), "extensions"),
        (("canary", 1, 2, 3, 4), "tuple"),
        ((), "tuple"),
        (jwt(exp=1), "ended"),
        (coroutine, "function"),
        (7, "int"),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)[:30]),
)
def test_rubbish_is_refused_and_not_shown(given: Any, why: str) -> None:
    made = given() if given is coroutine else given
    with pytest.raises(SaslAuthenticationError, match=why) as caught:
        given_token(made, "the provider", NOW)
    assert "canary" not in str(caught.value) and "the provider" in str(caught.value)


def test_extensions_may_be_read_once() -> None:
    assert given_token(("abc", None, None, iter([("a", "b")])), "the provider", NOW).extensions == {"a": "b"}


def test_tokens_that_end_at_once_are_fetched_once_a_second() -> None:
    now = [NOW]
    tokens = Tokens(lambda: Token("t", now[0] + 10), "it", Refresh(), lambda: now[0], lambda: 0.5)
    work, _ = tokens.renewal(0.0)
    assert work is not None
    work.run()
    assert tokens.renewal(0.0) == (None, 1000.0)
    now[0] += 1000
    assert tokens.renewal(1000.0)[0] is not None


def test_a_provider_that_raises_may_have_a_token_later() -> None:
    def fails() -> str:
        raise ValueError("nobody home")

    with pytest.raises(NetworkError, match="the provider raised ValueError: nobody home"):
        ask(fails, "the provider", lambda: NOW)

    def refuses() -> str:
        raise SaslAuthenticationError("never")

    with pytest.raises(SaslAuthenticationError, match="never"):
        ask(refuses, "the provider", lambda: NOW)


# -- JWT


def test_a_checked_token_has_its_times_and_its_subject() -> None:
    value = jwt(iat=NOW / 1000 - 5)
    assert checked_jwt(value, "sub", NOW) == Token(value, NOW + 600_000, NOW - 5000, "me")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("a.b", "2 part"),
        ("a.b.c.d", "4 part"),
        ("a.!.c", "no broker takes"),
        ("a.YWI.c", "no JSON"),
        ("a.WzFd.c", "no JSON object"),
        ("a." + "A" * 100_000 + ".c", "too long"),
        (jwt(exp=None), "exp"),
        (jwt(exp="soon"), "exp"),
        (jwt(exp=True), "exp"),
        (jwt(sub=None), "sub"),
        (jwt(sub=" "), "sub"),
        (jwt(iat="x"), "iat"),
        (jwt(exp=NOW / 1000), "ended 0 s ago"),
        ("a." + base64.urlsafe_b64encode(b"[" * 30_000).decode().rstrip("=") + ".c", "no JSON"),
    ],
    ids=lambda value: value[:20],
)
def test_tokens_that_the_client_refuses(value: str, why: str) -> None:
    with pytest.raises(SaslAuthenticationError, match=why) as caught:
        checked_jwt(value, "sub", NOW)
    assert value not in str(caught.value)


@given(st.text(max_size=200) | st.tuples(st.just("a"), st.text(max_size=100), st.just("c")).map(".".join))
def test_any_text_is_read_or_refused(value: str) -> None:
    try:
        assert isinstance(read_claims(value), dict)
    except SaslAuthenticationError:
        pass


# -- one token for all logins


class World:
    """A provider that counts, and a clock."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.given: Any = 3600.0
        """Seconds that the next token lasts, None for no end; or what the provider raises."""
        self.fetched = 0
        self.tokens = Tokens(self.fetch, "the token", Refresh(), self.clock.wall, lambda: 0.0)

    def fetch(self) -> Token:
        self.fetched += 1
        if isinstance(self.given, Exception):
            raise self.given
        end = None if self.given is None else self.clock.wall() + self.given * 1000
        return Token(f"token-{self.fetched}", end)

    def login(self) -> str:
        wanted = self.tokens.wanted()
        if isinstance(wanted, Blocking):
            wanted.run()
            self.tokens.settle()
            if wanted.error is not None:
                raise wanted.error
            return str(wanted.result.value)
        return wanted.value

    def renew(self) -> float:
        """What a client does that looks for renewals; ms until it looks again."""
        work, again = self.tokens.renewal(self.clock.now())
        if work is not None:
            work.run()
            work, again = self.tokens.renewal(self.clock.now())
            assert work is None
        return again - self.clock.now()


def test_the_first_token_is_fetched_before_anybody_logs_in() -> None:
    world = World()
    assert world.renew() == 0.8 * 3_600_000
    assert world.login() == "token-1" and world.fetched == 1


def test_logins_at_the_same_time_share_the_work() -> None:
    world = World()
    first, second = world.tokens.wanted(), world.tokens.wanted()
    assert first is second and isinstance(first, Blocking)
    first.run()
    assert world.login() == "token-1"


def test_a_token_is_renewed_before_it_ends_while_nobody_logs_in() -> None:
    world = World()
    world.clock.advance(world.renew() + 1)
    assert world.renew() > 0
    assert world.login() == "token-2"


def test_a_token_that_has_ended_is_not_used() -> None:
    world = World()
    world.login()
    world.clock.advance(3_600_000)
    assert world.login() == "token-2"


def test_while_a_renewal_is_under_way_the_old_token_is_used() -> None:
    world = World()
    world.login()
    world.clock.advance(0.8 * 3_600_000 + 1)
    work, _ = world.tokens.renewal(world.clock.now())
    assert isinstance(work, Blocking) and world.login() == "token-1"


def test_a_failed_renewal_is_repeated_and_said(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.login()
    world.given = NetworkError("nobody answers")
    world.clock.advance(0.8 * 3_600_000 + 1)
    assert world.renew() == 10_000
    assert world.login() == "token-1"
    assert any("nobody answers" in r.getMessage() and r.levelno == logging.WARNING for r in caplog.records)
    world.given = 3600.0
    world.clock.advance(10_001)
    world.renew()
    assert world.login() == "token-3"


def test_a_token_without_an_end_is_for_one_login() -> None:
    world = World()
    world.given = None
    assert [world.login(), world.login()] == ["token-1", "token-2"]
    assert world.renew() == math.inf


def test_a_refused_token_is_not_shown_again() -> None:
    world = World()
    world.login()
    token = world.tokens.wanted()
    assert isinstance(token, Token)
    world.tokens.refused(token)
    assert world.login() == "token-2"
    world.tokens.refused(token)
    assert world.login() == "token-2", "it was another one that was refused"


def test_nothing_shows_a_token() -> None:
    world = World()
    world.login()
    assert "token-1" not in repr(world.tokens) + repr(Token("token-1"))


@pytest.mark.parametrize("bad", [{"auth": "x"}, {"a1": "x"}, {"": "x"}, {"a": ""}, {"a": "\x01"}, {"a": "é"}, {1: "x"}])
def test_extensions_that_brokers_do_not_take(bad: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="SASL extension"):
        check_extensions(bad)
    with pytest.raises(ConfigError, match="8192"):
        check_extensions({"a": "x" * 9000})
