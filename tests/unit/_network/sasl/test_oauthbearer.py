"""OAUTHBEARER: the messages, and a broker that refuses, or does not end."""

from __future__ import annotations

import pytest

from forebay._network.sasl.mechanism import Blocking
from forebay._network.sasl.oauthbearer import OAuthBearer, first_message
from forebay._network.tokens import Refresh, Token, Tokens
from forebay.errors import ConfigError, NetworkError, SaslAuthenticationError


def bearer(token: Token = Token("canary", 9e12, None, "alice"), **extensions: str) -> OAuthBearer:  # noqa: B008
    return OAuthBearer(Tokens(lambda: token, "the token", Refresh(), lambda: 0, lambda: 0), "a provider", extensions)


def begun(mechanism: OAuthBearer) -> tuple[object, bytes]:
    exchange = mechanism.exchange("broker")
    work = next(exchange)
    assert isinstance(work, Blocking)
    work.run()
    first = exchange.send(work.result)
    assert isinstance(first, bytes)
    return exchange, first


def test_the_message() -> None:
    """Java's OAuthBearerClientInitialResponse: header, token, extensions, two separators at the end."""
    assert first_message("abc", {}) == b"n,,\x01auth=Bearer abc\x01\x01"
    assert first_message("abc", {"x": "1", "y": "2"}) == b"n,,\x01auth=Bearer abc\x01x=1\x01y=2\x01\x01"


def test_an_empty_answer_takes_the_token() -> None:
    mechanism = bearer(traceId="1")
    exchange, first = begun(mechanism)
    assert first == b"n,,\x01auth=Bearer canary\x01traceId=1\x01\x01"
    with pytest.raises(StopIteration):
        exchange.send(b"")  # type: ignore[attr-defined]
    assert isinstance(next(mechanism.exchange("broker")), bytes), "the next login has a token"
    assert mechanism.who == "'alice' by a provider" and "canary" not in repr(mechanism)


def test_the_tokens_own_extensions_come_on_top() -> None:
    _, first = begun(bearer(Token("t", 9e12, extensions={"x": "own"}), x="all", y="all"))
    assert first == b"n,,\x01auth=Bearer t\x01x=own\x01y=all\x01\x01"


@pytest.mark.parametrize("answer", [b'{"status":"invalid_token"}', b"\xff\xfe", b"x" * 500_000])
def test_a_refusal_is_ended_and_the_token_not_used_again(answer: bytes) -> None:
    mechanism = bearer()
    exchange, _ = begun(mechanism)
    assert exchange.send(answer) == b"\x01"  # type: ignore[attr-defined]
    assert isinstance(next(mechanism.exchange("broker")), Blocking), "the next login fetches another token"
    with pytest.raises(SaslAuthenticationError, match="refused the token") as caught:
        exchange.send(answer)  # type: ignore[attr-defined]
    assert len(str(caught.value)) < 3000


def test_extensions_that_cannot_be_sent_are_refused_as_it_is_made() -> None:
    with pytest.raises(ConfigError, match="SASL extension 'a'"):
        bearer(a="")


def test_no_token() -> None:
    exchange = bearer().exchange("broker")
    next(exchange)
    with pytest.raises(NetworkError):
        exchange.throw(NetworkError("no token"))
