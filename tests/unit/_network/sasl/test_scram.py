"""SCRAM against the RFCs' own exchange, and against a broker that is wrong in each way that there is."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._network.sasl.login import Login
from forebay._network.sasl.mechanism import Blocking
from forebay._network.sasl.scram import Scram, escaped, parse_server_first
from forebay.config import Secret
from forebay.config._security_rules import Credentials
from forebay.errors import SaslAuthenticationError

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def scram(password: str = "pencil", token: bool = False) -> Scram:
    login = Login(lambda: Credentials("user", Secret(password), token))
    return Scram("SCRAM-SHA-256", login, lambda _: base64.b64decode(NONCE))


def test_the_exchange_of_rfc_7677() -> None:
    exchange = scram().exchange("broker")
    assert next(exchange) == f"n,,n=user,r={NONCE}".encode()
    assert exchange.send(SERVER_FIRST.encode()) == CLIENT_FINAL.encode()
    with pytest.raises(StopIteration):
        exchange.send(SERVER_FINAL.encode())


def test_a_delegation_token_says_so() -> None:
    first = next(scram(token=True).exchange("broker"))
    assert isinstance(first, bytes) and first.endswith(b",tokenauth=true")


def test_names_are_escaped() -> None:
    assert escaped("a=b,c é") == "a=3Db=2Cc é"


def test_a_reconnection_iterates_no_more() -> None:
    mechanism = scram()
    found = []
    for _ in range(2):
        exchange = mechanism.exchange("broker")
        next(exchange)
        assert exchange.send(SERVER_FIRST.encode()) == CLIENT_FINAL.encode()
        found.append(mechanism._salted)
    assert found[0] is found[1]


def test_many_iterations_are_the_helpers_work() -> None:
    mechanism = scram()
    exchange = mechanism.exchange("broker")
    next(exchange)
    work = exchange.send(SERVER_FIRST.replace("i=4096", "i=16385").encode())
    assert isinstance(work, Blocking) and "16385" in repr(work) and "pencil" not in repr(work)
    work.run()
    final = exchange.send(work.result)
    assert isinstance(final, bytes) and final.startswith(b"c=biws,r=")
    again = mechanism.exchange("broker")
    next(again)
    assert again.send(SERVER_FIRST.replace("i=4096", "i=16385").encode()) == final, "iterated once"


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ("e=unknown-user", "unknown-user"),
        ("m=x,r=1,s=2,i=3", "extension"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        ("r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (f"r={NONCE}x,s=,i=4096", "salt is empty"),
        (f"r={NONCE}x,s=***,i=4096", "not base64"),
        (f"r={NONCE}x,s=W22Z,i=4095", "iterations"),
        (f"r={NONCE}x,s=W22Z,i=1000001", "iterations"),
        (f"r={NONCE}x,s=W22Z,i={10**30}", "iterations"),
        (f"r={NONCE}x,s=W22Z,i=-5", "iterations"),
        (f"r={NONCE}x,s=W22Z,i=4096;", "iterations"),
        (f"r={NONCE}x,s=W22Z", "lacks i"),
        (f"r={NONCE}x,r=y,s=W22Z,i=4096", "name=value"),
        ("", "name=value"),
        ("x" * 9000, "bytes"),
    ],
)
def test_a_first_message_that_is_wrong(first: str, why: str) -> None:
    exchange = scram().exchange("broker")
    next(exchange)
    with pytest.raises(SaslAuthenticationError, match=why):
        exchange.send(first.encode())


@pytest.mark.parametrize("last", ["v=", "v=6rriTRBi", "e=other-error", "x=1", "v=" + "A" * 43 + "="])
def test_a_broker_that_does_not_know_the_password(last: str) -> None:
    exchange = scram().exchange("broker")
    next(exchange)
    exchange.send(SERVER_FIRST.encode())
    with pytest.raises(SaslAuthenticationError):
        exchange.send(last.encode())


@given(st.text(max_size=200))
def test_any_first_message_is_taken_or_refused(text: str) -> None:
    try:
        found = parse_server_first(text, NONCE)
    except SaslAuthenticationError:
        return
    assert found.nonce.startswith(NONCE) and found.iterations >= 4096


@given(st.binary(max_size=300))
def test_any_bytes_are_refused(token: bytes) -> None:
    exchange = scram().exchange("broker")
    next(exchange)
    with pytest.raises(SaslAuthenticationError):
        exchange.send(token)


def test_nothing_of_the_password_is_shown() -> None:
    assert "pencil" not in repr(scram()) + scram().who
