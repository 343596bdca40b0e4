"""Proxies, forwarded ports and address families, with a real Kafka, real proxies and real names."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from forebay import KafkaProducer
from forebay.errors import AuthenticationError
from tests.integration.test_security import RECORDS, login, refused, send_all
from tests.support.fixtures import ReadBackFactory, TopicFactory
from tests.support.pace import HANG_S
from tests.support.proxies import proxy
from tests.support.secure import Secure
from tests.support.three import MAPPED_HOST, Three
from tools.kafka import RealKafka

USER = "ann:pa%2Fss-canary"
KINDS = ("socks5", "http")


@pytest.fixture(scope="module")
def proxies() -> Iterator[dict[str, str]]:
    """URLs of a proxy of each kind without a login, and of one with it."""
    with (
        proxy("socks5") as socks,
        proxy("http") as http,
        proxy("socks5", "ann:pa/ss-canary") as socks_login,
        proxy("http", "ann:pa/ss-canary") as http_login,
    ):
        yield {
            "socks5": f"socks5://{socks}",
            "http": f"http://{http}",
            "socks5-login": f"socks5://{USER}@{socks_login}",
            "http-login": f"http://{USER}@{http_login}",
        }


@pytest.mark.parametrize("listener", ["PLAIN", "SSL", "MTLS", "SASLP", "SASLS"])
@pytest.mark.parametrize("kind", ["socks5", "http", "socks5-login", "http-login"])
def test_through_a_proxy(
    secure: Secure, proxies: dict[str, str], topic: TopicFactory, read_back: ReadBackFactory, kind: str, listener: str
) -> None:
    name = topic(secure.kafka, 3)
    if listener == "PLAIN":
        options: dict[str, Any] = {"bootstrap.servers": secure.kafka.bootstrap_servers}
    else:
        options = secure.options(listener, **(login("SCRAM-SHA-256") if listener.startswith("SASL") else {}))
    values = send_all({**options, "proxy.url": proxies[kind]}, name)
    found = read_back(secure.kafka, name).wait_for(RECORDS)
    assert sorted(record.value or b"" for record in found) == sorted(values)


def test_kafka_pythons_name(secure: Secure, proxies: dict[str, str], topic: TopicFactory) -> None:
    with KafkaProducer(bootstrap_servers=secure.kafka.bootstrap_servers, socks5_proxy=proxies["socks5"]) as producer:
        assert producer.send(topic(secure.kafka, 1), b"x").result(HANG_S).offset == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_login_that_the_proxy_refuses(secure: Secure, kind: str) -> None:
    # A proxy of its own: pproxy remembers the address of a client that it has let in.
    with proxy(kind, "ann:right") as address:
        options = {"bootstrap.servers": secure.kafka.bootstrap_servers}
        error = refused({**options, "proxy.url": f"{kind}://ann:canary@{address}"}, wait_ms=3000)
        assert "the proxy" in str(error) and not re.search(r"\bann\b|canary", str(error)), error
        other = refused({**options, "proxy.url": f"{kind}://{address}"}, wait_ms=3000)
        if kind == "http":
            assert isinstance(error, AuthenticationError) and isinstance(other, AuthenticationError), other
            assert "asks for a user and a password" in str(other), other
        else:  # pproxy closes the connection in place of SOCKS's refusal
            assert "closed the connection before it had answered" in str(other), other


@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_that_the_proxy_does_not_reach(proxies: dict[str, str], kind: str) -> None:
    # pproxy says yes before it has tried, and closes then.
    error = refused({"bootstrap.servers": "127.0.0.1:1", "proxy.url": proxies[kind]}, wait_ms=3000)
    assert "the proxy 127.0.0.1:" in str(error), error


def test_a_proxy_that_is_none(secure: Secure, proxies: dict[str, str]) -> None:
    error = refused({"bootstrap.servers": "h:1", "proxy.url": f"http://{secure.kafka.bootstrap_servers}"}, 3000)
    assert "proxy.url is http" in str(error), error
    error = refused({"bootstrap.servers": "h:1", "proxy.url": "socks5://127.0.0.1:1"}, 3000)
    assert "ECONNREFUSED" in str(error) and "proxy.url is socks5" in str(error), error


def test_brokers_that_are_reached_at_other_addresses(
    three: Three, three_kafka: RealKafka, topic: TopicFactory, read_back: ReadBackFactory
) -> None:
    """They advertise a name that no name server knows; their certificates are for that name."""
    name = topic(three_kafka, 6, replication=3)
    brokers = [three_kafka.address_of("MAPPED", node) for node in three_kafka.node_ids]
    real = [broker.replace(MAPPED_HOST, "127.0.0.1") for broker in brokers]
    options = {
        "bootstrap.servers": brokers[0],
        "security.protocol": "SSL",
        "ssl.truststore.location": str(three.ca),
        "partitioner.class": "round_robin",
    }

    def move(host: str, port: int) -> tuple[str, int]:
        return host.replace(MAPPED_HOST, "127.0.0.1"), port

    pairs = ",".join(f"{one}={other}" for one, other in zip(brokers, real, strict=True))
    values = send_all({**options, "broker.address.map": pairs}, name)
    values += send_all({**options, "broker.address.map": move}, name)
    found = read_back(three_kafka, name).wait_for(2 * RECORDS)
    assert sorted(record.value or b"" for record in found) == sorted(values)
    assert len({record.partition for record in found}) == 6, "every broker was reached"
    error = refused(options, 3000)
    assert MAPPED_HOST in str(error), error


def test_all_brokers_at_one_address(secure: Secure, topic: TopicFactory) -> None:
    """A forwarded port: whatever the broker says, it is reached there."""
    host, port = secure.kafka.address_of("SSL").split(":")
    options = secure.options("SSL", **{"bootstrap.servers": f"{host}:1", "broker.address.map": f"*={host}:{port}"})
    send_all(options, topic(secure.kafka, 1))


def test_one_address_family(secure: Secure, topic: TopicFactory) -> None:
    """``localhost`` is ::1, too, where the broker does not listen."""
    send_all(secure.options("SSL", **{"broker.address.family": "v4"}), topic(secure.kafka, 1))
    error = refused({"bootstrap.servers": secure.kafka.bootstrap_servers, "broker.address.family": "v6"}, 3000)
    assert "broker.address.family" in str(error), error


class Stranger:
    """Not Kafka: says ``greeting`` at once, or in answer to the first bytes, and closes."""

    def __init__(self, greeting: bytes, *, first: bool) -> None:
        self._greeting, self._first = greeting, first
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:{1}".format(*self._server.getsockname())
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError):
                if not self._first:
                    client.recv(1 << 16)
                client.sendall(self._greeting)
                client.shutdown(socket.SHUT_WR)
                while client.recv(1 << 16):
                    pass

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize(
    ("greeting", "first", "what"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", False, "an HTTP server"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", True, "an SSH server"),
    ],
)
def test_something_else_on_the_port(protocol: str, greeting: bytes, first: bool, what: str) -> None:
    stranger = Stranger(greeting, first=first)
    try:
        sasl = login("PLAIN") if protocol.startswith("SASL") else {}
        error = refused({"bootstrap.servers": stranger.address, "security.protocol": protocol, **sasl}, 3000)
    finally:
        stranger.close()
    assert what in str(error), error
