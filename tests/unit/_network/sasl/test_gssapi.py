"""GSSAPI's exchange with a library that does what a test says; tests/integration/test_kerberos.py has the real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forebay._network.sasl.gss_library import CredentialStore, GssError
from forebay._network.sasl.gssapi import (
    AWAY,
    MAX_TOKEN,
    Gssapi,
    check_keytab,
    kerberos_error,
    layer_answer,
)
from forebay._network.sasl.mechanism import Blocking
from forebay.errors import ConfigError, KafkaError, NetworkError, SaslAuthenticationError

STORE = CredentialStore("me@R", "/keys", "MEMORY:x")
BASE = -1765328384


class FakeLibrary:
    """Two steps, then the layer token, each token with a mark of who made it."""

    def __init__(
        self, *, mutual: bool = True, offer: bytes = b"\x01\x00\x10\x00", fails: str = "", code: int = 0
    ) -> None:
        self.complete = False
        self.mutual = False
        self._mutual, self._offer, self._fails, self._code = mutual, offer, fails, code
        self.asked: list[Any] = []

    def _try(self, what: str) -> None:
        if what == self._fails:
            raise GssError(1 << 16, BASE + self._code, f"{what} failed")

    def context(self, service: str, store: CredentialStore) -> FakeLibrary:
        self._try("context")
        self.asked.append((service, store))
        return self

    def step(self, token: bytes) -> bytes:
        self._try("step")
        self.asked.append(token)
        self.complete = token != b""
        self.mutual = self.complete and self._mutual
        return b"" if self.complete else b"first"

    def unwrap(self, token: bytes) -> bytes:
        self._try("unwrap")
        return self._offer

    def wrap(self, text: bytes) -> bytes:
        self._try("wrap")
        return b"sealed " + text


def run(library: FakeLibrary, answers: list[bytes]) -> list[bytes]:
    """Our tokens; blocking work is done at once."""
    exchange = Gssapi(library, "kafka", STORE).exchange("broker.example")
    left, tokens, given = list(answers), [], None
    try:
        while True:
            wanted = exchange.send(given)
            if isinstance(wanted, Blocking):
                wanted.run()
                given = exchange.throw(wanted.error) if wanted.error is not None else wanted.result
            else:
                tokens.append(wanted)
                given = left.pop(0)
    except StopIteration:
        assert left == []
        return tokens


def test_the_exchange() -> None:
    library = FakeLibrary()
    assert run(library, [b"theirs", b"layers", b""]) == [b"first", b"", b"sealed \x01\x00\x00\x00"]
    assert library.asked == [("kafka@broker.example", STORE), b"", b"theirs"]


@pytest.mark.parametrize(
    ("library", "answers", "why"),
    [
        (FakeLibrary(mutual=False), [b"theirs"], "did not prove who it is"),
        (FakeLibrary(), [bytes(MAX_TOKEN + 1)], "a token of 65537 bytes"),
        (FakeLibrary(), [b"theirs", bytes(MAX_TOKEN + 1)], "a token of 65537 bytes"),
        (FakeLibrary(offer=b""), [b"theirs", b"x"], "0 bytes and not 4"),
        (FakeLibrary(offer=b"\x00\x00\x10\x00"), [b"theirs", b"x"], "insists on a security layer"),
        (FakeLibrary(fails="unwrap"), [b"theirs", b"x"], "unwrap failed"),
        (FakeLibrary(fails="wrap"), [b"theirs", b"x"], "wrap failed"),
        (FakeLibrary(fails="step"), [], "step failed"),
        (FakeLibrary(fails="context", code=181), [], "no key of this principal"),
    ],
)
def test_what_is_refused(library: FakeLibrary, answers: list[bytes], why: str) -> None:
    with pytest.raises(SaslAuthenticationError, match=why):
        run(library, answers)


@pytest.mark.parametrize(
    "offer", [b"", b"\x01", b"\x01\x00\x00", b"\x01\x00\x00\x00\x00", b"\x06\x00\x00\x01", bytes(4)]
)
def test_an_offer_that_is_none(offer: bytes) -> None:
    with pytest.raises(SaslAuthenticationError):
        layer_answer(offer)


@pytest.mark.parametrize("offer", [b"\x01\x00\x00\x00", b"\x07\xff\xff\xff"])
def test_no_layer_is_chosen(offer: bytes) -> None:
    assert layer_answer(offer) == b"\x01\x00\x00\x00"


@pytest.mark.parametrize("code", AWAY)
def test_what_may_be_over_the_next_time(code: int) -> None:
    with pytest.raises(NetworkError) as caught:
        run(FakeLibrary(fails="step", code=code), [])
    assert caught.value.retriable and AWAY[code] in str(caught.value) and "kafka@broker.example" in str(caught.value)


@pytest.mark.parametrize(
    ("code", "store", "why"),
    [
        (7, STORE, "sasl.kerberos.service.name"),
        (195, STORE, "keytab /keys has no key of me@R"),
        (195, CredentialStore(None, None, None), "run kinit"),
        (24, STORE, "does not fit"),
        (99, STORE, "failed: Kerberos gives no ticket, or the broker's is not accepted (Kerberos: words)"),
    ],
)
def test_each_refusal_says_what_to_do(code: int, store: CredentialStore, why: str) -> None:
    error: KafkaError = kerberos_error("kafka@b", store, GssError(1 << 16, BASE + code, "words"))
    assert isinstance(error, SaslAuthenticationError) and why in str(error)


def test_who() -> None:
    library = FakeLibrary()
    assert Gssapi(library, "kafka", STORE).who == "principal me@R with keytab /keys"
    assert Gssapi(library, "kafka", CredentialStore(None, None, None)).who == "the ticket cache's principal"
    assert "me@R" in repr(Gssapi(library, "kafka", STORE))


def test_a_keytab_is_looked_at(tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.write_bytes(b"\x05\x02rest")
    check_keytab(str(good), "option")
    with pytest.raises(ConfigError, match=r"option: keytab .*nowhere: No such file"):
        check_keytab(str(tmp_path / "nowhere"), "option")


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("10.0.0.7", ["10.0.0.7"]),
        ("2001:db8::7", ["2001:db8::7"]),
        ("broker.example", []),
        ("7.example", []),
    ],
)
def test_the_principal_of_an_address_has_its_name(host: str, asked: list[str]) -> None:
    found: list[str] = []

    def name_of(address: str) -> str:
        found.append(address)
        return "named.example"

    library = FakeLibrary()
    exchange = Gssapi(library, "kafka", STORE, name_of).exchange(host)
    wanted = next(exchange)
    while isinstance(wanted, Blocking):
        wanted.run()
        wanted = exchange.send(wanted.result)
    assert found == asked
    assert library.asked[0] == (f"kafka@{'named.example' if asked else host}", STORE)
