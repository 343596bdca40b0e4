"""The filter against OpenSSL's own server, all in memory: any cut of the bytes, any damage."""

from __future__ import annotations

import ssl
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forebay._network.tls import MONTHS, TlsFilter, unix_time
from forebay._network.transport import StreamFilter
from forebay.errors import KafkaError, SslAuthenticationError
from tests.conformance.worlds import authority
from tests.support.examples import examples


class Server:
    """The other side."""

    def __init__(self, *, wants_certificate: bool = False) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority().issue_cert("localhost").configure_cert(context)
        if wants_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
            authority().configure_trust(context)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.ready = False

    def shake_hands(self) -> None:
        if self.ready:
            return
        try:
            self.tls.do_handshake()
            self.ready = True
        except ssl.SSLWantReadError:
            pass


def client(name: str = "localhost") -> TlsFilter:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority().configure_trust(context)
    return TlsFilter(context, name, "the tests' store")


def exchange(ours: StreamFilter, server: Server, piece: int = 1 << 20) -> bool:
    """Goes on until neither side has anything to say; whether our handshake is over."""
    done = False
    while True:
        out = ours.outgoing()
        server.incoming.write(out)
        try:
            server.shake_hands()
        except ssl.SSLError:
            pass  # what it says of it is in its output
        data = server.outgoing.read()
        if not out and not data:
            return done
        for at in range(0, len(data), piece):
            ours.feed(memoryview(data[at : at + piece]))
            done = done or ours.shake_hands()


def feed(ours: StreamFilter, data: bytes, piece: int) -> None:
    for at in range(0, len(data), piece):
        ours.feed(memoryview(data[at : at + piece]))
        ours.shake_hands()


def received(ours: StreamFilter, room: int = 100_000) -> bytes:
    found = bytearray()
    into = bytearray(room)
    while (size := ours.receive(memoryview(into))) > 0:
        found += into[:size]
    return bytes(found)


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_bytes_both_ways(piece: int) -> None:
    ours, server = client(), Server()
    ours.start()
    assert exchange(ours, server, piece)
    sealed = ours.send([memoryview(b"abc"), memoryview(bytes(100_000))])
    assert len(sealed) > 100_003
    server.incoming.write(sealed)
    got = b""
    while len(got) < 100_003:
        got += server.tls.read(1 << 20)
    assert got == b"abc" + bytes(100_000)
    server.tls.write(b"answer")
    ours.feed(memoryview(server.outgoing.read()))
    assert received(ours, 2) == b"answer"
    assert ours.send([]) == b""


def test_the_peers_end() -> None:
    ours, server = client(), Server()
    ours.start()
    assert exchange(ours, server)
    with pytest.raises(ssl.SSLWantReadError):
        server.tls.unwrap()
    ours.feed(memoryview(server.outgoing.read()))
    assert received(ours) == b"" and ours.receive(memoryview(bytearray(10))) <= 0
    assert ours.end() is not None


def test_another_host() -> None:
    ours = client("other.example")
    ours.start()
    with pytest.raises(SslAuthenticationError, match="other.example"):
        exchange(ours, Server())
    assert ours.outgoing(), "the server is told why"


def test_a_client_certificate_that_is_missing() -> None:
    ours, server = client(), Server(wants_certificate=True)
    ours.start()

    def connect() -> None:
        exchange(ours, server)
        received(ours)

    with pytest.raises(SslAuthenticationError, match="ssl.keystore.location"):
        connect()


def test_a_name_that_cannot_be_asked_for() -> None:
    with pytest.raises(SslAuthenticationError):
        client("." * 300).start()


def test_the_end_of_the_certificate_is_told() -> None:
    told: list[tuple[str, float]] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority().configure_trust(context)
    ours = TlsFilter(context, "localhost", "store", lambda name, end: told.append((name, end)))
    ours.start()
    assert exchange(ours, Server())
    ((name, end),) = told
    assert name == "localhost" and end > 1e9


@pytest.mark.parametrize("piece", [1, 1 << 16])
@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "an SSH server"),
        (b"220 mail.example ESMTP\r\n", "a mail or FTP server"),
        (b"-ERR unknown command\r\n", "a Redis or mail server"),
        (b"\0\0\0\x1c" + bytes(28), "without TLS"),
    ],
)
def test_something_else_on_the_port(answer: bytes, what: str, piece: int) -> None:
    ours = client()
    ours.start()
    with pytest.raises(SslAuthenticationError, match=what):
        feed(ours, answer, piece)
    # One that closes before OpenSSL has read enough to judge.
    ours = client()
    ours.start()
    ours.feed(memoryview(answer[:4]))
    assert not ours.shake_hands()
    assert what in ours.cut_off()


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=400))
def test_any_bytes_instead_of_a_handshake(data: bytes) -> None:
    ours = client()
    ours.start()
    ours.feed(memoryview(data))
    try:
        assert not ours.shake_hands()
    except KafkaError:
        pass


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples(200))
@given(st.integers(0, 5000), st.integers(1, 255))
def test_a_damaged_handshake_or_stream(at: int, flip: int) -> None:
    ours, server = client(), Server()
    ours.start()
    server.incoming.write(ours.outgoing())
    server.shake_hands()
    data = bytearray(server.outgoing.read())
    data[at % len(data)] ^= flip
    ours.feed(memoryview(data))
    try:
        done = ours.shake_hands()
    except KafkaError:
        return
    if done:  # in the version of a record, which TLS 1.3 ignores (RFC 8446, 5.1): then nothing was damaged
        exchange(ours, server)
        assert server.ready
        server.incoming.write(ours.send([memoryview(b"abc")]))
        assert server.tls.read(10) == b"abc"


@given(st.datetimes(min_value=datetime(1950, 1, 1), max_value=datetime(9999, 12, 31)))
def test_a_certificate_s_time(when: datetime) -> None:
    """As Python's own, which waits for a lock."""
    text = f"{MONTHS[when.month - 1]} {when.day:2d} {when:%H:%M:%S} {when.year} GMT"
    assert unix_time(text) == ssl.cert_time_to_seconds(text)
