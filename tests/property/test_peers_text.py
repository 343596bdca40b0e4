"""A peer's text, whoever the peer is: no message, log line or table has it raw, and it is not long."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._network import oidc, tls_words
from forebay._network.handshake import _check_answer, _check_offer
from forebay._network.proxy import Proxy
from forebay._network.reasons import loss_error
from forebay._network.sasl.gss_library import CredentialStore, GssError
from forebay._network.sasl.gssapi import kerberos_error
from forebay._network.sasl.scram import parse_server_first
from forebay._protocol.framing import frame_size
from forebay._protocol.produce_response import PartitionResponse
from forebay._protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from forebay._sender.produce import error_in, record_errors_in
from forebay.cli.cluster import json_text
from forebay.cli.failure import line_for
from forebay.cli.kcat import listing
from forebay.config import ProducerConfig
from forebay.errors import KafkaError, NetworkError, error_for, for_code
from forebay.errors._base import printable
from forebay.model import ClusterDescription, Node, TopicDescription
from forebay.spark.jobs.encoding.registry import _said

EVIL = "\r\nfake: line\x1b[2J\x1b]0;title\x07\x9b31m\u202e\u2028\x00"
LONG = EVIL * 2000
MOST = 4000
NODE = Node(1, "h", 9092, None)


class Who:
    name, who = "PLAIN", "user 'ann'"


def proxied(kind: str, answer: bytes) -> KafkaError:
    tunnel = Proxy(kind, "p", 1, "ann", None if kind == "socks5" else Secretive()).tunnel(lambda: ("h", 1), None)
    tunnel.start()
    tunnel.feed(memoryview(answer))
    with pytest.raises(KafkaError) as caught:
        tunnel.shake_hands()
    return caught.value


class Secretive:
    def reveal(self) -> str:
        return "x"


def caught(call: Callable[[], Any]) -> BaseException:
    with pytest.raises(KafkaError) as found:
        call()
    return found.value


ANSWER = PartitionResponse("t", 0, 87, -1, error_message=LONG, record_errors=[(0, LONG), (1, None)])
"""Of a partition: an error with texts."""


def http_error(body: bytes) -> Any:
    return type("E", (), {"read": lambda self: body, "reason": LONG})()


SOURCES: dict[str, Callable[[], Any]] = {
    "an error of a broker": lambda: error_for(2, LONG, topic=EVIL),
    "an error of another": lambda: error_for(12345, LONG),
    "a produce error": lambda: error_in(ANSWER),
    "an error of one record": lambda: (record_errors_in(ANSWER, KafkaError("x"))[1] or {})[0],
    "mechanisms": lambda: caught(
        lambda: _check_offer(NODE, Who(), SaslHandshakeResponse(33, [LONG] * 50))  # type: ignore[arg-type]
    ),
    "a refused login": lambda: caught(
        lambda: _check_answer(NODE, Who(), SaslAuthenticateResponse(58, LONG, b"", 0))  # type: ignore[arg-type]
    ),
    "SCRAM": lambda: caught(lambda: parse_server_first(f"e={LONG}", "n")),
    "SCRAM's iterations": lambda: caught(lambda: parse_server_first(f"r=nx,s=YQ==,i={LONG}".replace(",f", ""), "n")),
    "a banner": lambda: caught(lambda: frame_size(b"\x1b\r\n\x07", 100)),
    "a banner in TLS": lambda: tls_words.no_tls(b"HTTP\x1b\r\n", "h"),
    "a SOCKS proxy": lambda: proxied("socks5", b"\x1b\r\n\x07" * 100),
    "an HTTP proxy": lambda: proxied("http", b"HTTP/1.1 500 \x1b[2J" + b"x" * 4000 + b"\r\n\r\n"),
    "no proxy": lambda: proxied("http", b"SSH-2.0\x1b[2J\x07\r\n"),
    "an identity provider": lambda: caught(
        lambda: oidc.read_answer(400, LONG.encode(), oidc.TokenRequest({}, b"", ()), "https://idp/")
    ),
    "what is no HTTP": lambda: NetworkError(oidc.trouble(http.client.BadStatusLine(LONG), "idp")),
    "OpenSSL": lambda: tls_words.refusal(ssl.SSLError(1, LONG), "h", "s"),
    "Kerberos": lambda: kerberos_error("k@h", CredentialStore(None, None, None), GssError(1, 1, LONG[:500])),
    "a registry": lambda: KafkaError(_said(http_error(json.dumps({"message": LONG}).encode()))),
    "a registry's reason": lambda: KafkaError(_said(http_error(b"no"))),
    "a lost connection": lambda: loss_error(type("S", (), {"state": None, "node": NODE})(), OSError(5, EVIL)),
}


@pytest.mark.parametrize("source", SOURCES)
def test_no_text_of_a_peer_is_raw_or_long(source: str) -> None:
    error = SOURCES[source]()
    assert isinstance(error, KafkaError)
    for text in (str(error), error.message, line_for(error)):
        assert text.isprintable() and len(text) < MOST, text


@pytest.mark.parametrize("kind", sorted({kind for code in range(200) if (kind := for_code(code))}, key=str))
def test_each_class_of_errors_is_printable(kind: type[KafkaError]) -> None:
    assert str(kind(EVIL, node=EVIL)).isprintable()


@given(st.text())
def test_any_text(text: str) -> None:
    assert printable(text).isprintable() and str(KafkaError(text)).isprintable()
    assert printable(text, None) == text or not text.isprintable()
    assert json_text({"a": text}).isprintable() and json.loads(json_text({"a": text})) == {"a": text}


def test_a_table_and_a_listing() -> None:
    nodes = (Node(1, printable(EVIL), 9092, None),)
    found = ClusterDescription(EVIL, None, nodes, (TopicDescription(EVIL, (), False, error_for(3)),))
    text = listing(found, ProducerConfig(bootstrap_servers="h:1"), None)
    assert all(line.isprintable() for line in text.split("\n"))
