"""SASL PLAIN: one token."""

from __future__ import annotations

import pytest

from forebay._network.sasl.login import Login
from forebay._network.sasl.plain import Plain
from forebay.config import Secret
from forebay.config._security_rules import Credentials
from forebay.errors import SaslAuthenticationError


def plain(user: str, password: str) -> Plain:
    return Plain(Login(lambda: Credentials(user, Secret(password))))


def test_the_token() -> None:
    exchange = plain("alice", "pä,=ss").exchange("broker")
    assert next(exchange) == "\0alice\0pä,=ss".encode()
    with pytest.raises(StopIteration):
        exchange.send(b"")


@pytest.mark.parametrize(("user", "password"), [("a\0b", "x"), ("a", "x\0")])
def test_a_nul_is_refused(user: str, password: str) -> None:
    with pytest.raises(SaslAuthenticationError, match="NUL") as caught:
        next(plain(user, password).exchange("broker"))
    assert password not in str(caught.value)


def test_nothing_of_the_password_is_shown() -> None:
    assert "hush" not in repr(plain("alice", "hush")) and "alice" in plain("alice", "hush").who
