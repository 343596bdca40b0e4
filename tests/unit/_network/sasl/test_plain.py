"""SASL PLAIN: one token."""

from __future__ import annotations

import pytest

from forebay._network.sasl.plain import Plain
from forebay.config import Secret
from forebay.errors import ConfigError


def test_the_token() -> None:
    exchange = Plain("alice", Secret("pä,=ss")).exchange("broker")
    assert next(exchange) == "\0alice\0pä,=ss".encode()
    with pytest.raises(StopIteration):
        exchange.send(b"")


@pytest.mark.parametrize(("user", "password"), [("a\0b", "x"), ("a", "x\0")])
def test_a_nul_is_refused(user: str, password: str) -> None:
    with pytest.raises(ConfigError, match="NUL") as caught:
        Plain(user, Secret(password))
    assert password not in str(caught.value)


def test_nothing_of_the_password_is_shown() -> None:
    assert "hush" not in repr(Plain("alice", Secret("hush"))) and "alice" in Plain("alice", Secret("hush")).who
