"""The dialogues with proxies: each answer in one piece and byte by byte, each refusal in one sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._network.proxy import HTTP, LIMIT, SOCKS5, Proxy, Tunnel
from forebay.config import Secret
from forebay.errors import AuthenticationError, KafkaError, NetworkError

from .test_tls import Server, client, exchange, received

SOCKS = Proxy(SOCKS5, "proxy.example", 1080)
SOCKS_LOGIN = Proxy(SOCKS5, "proxy.example", 1080, "ann", Secret("canary"))
WEB = Proxy(HTTP, "proxy.example", 8080)
WEB_LOGIN = Proxy(HTTP, "proxy.example", 8080, "ann", Secret("canary"))
PIECES = [1, 3, 1 << 16]
ADDRESS = b"\x05\x00\x00\x01\x7f\x00\x00\x01\x23\x45"


def talk(tunnel: Tunnel, answers: list[bytes], piece: int = 1 << 16) -> tuple[bool, list[bytes]]:
    """Gives the proxy's answers in pieces; whether the dialogue is over, and what the tunnel said before each."""
    tunnel.start()
    said = [tunnel.outgoing()]
    done = False
    for answer in answers:
        for at in range(0, len(answer), piece):
            assert not done, "it takes no more than the answer"
            tunnel.feed(memoryview(answer[at : at + piece]))
            done = tunnel.shake_hands()
        said.append(tunnel.outgoing())
    return done, said


def open_to(proxy: Proxy, host: str = "broker.example", port: int = 9092) -> Tunnel:
    return proxy.tunnel(lambda: (host, port), None)


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("broker.example", b"\x03\x0ebroker.example"),
        ("10.1.2.3", b"\x01\x0a\x01\x02\x03"),
        ("::1", b"\x04" + bytes(15) + b"\x01"),
        ("bücher.example", b"\x03\x15xn--bcher-kva.example"),
    ],
)
@pytest.mark.parametrize(
    "answer", [ADDRESS, b"\x05\x00\x00\x03\x02ab\x01\x02", b"\x05\x00\x00\x04" + bytes(16) + b"\x01\x02"]
)
def test_socks(piece: int, host: str, address: bytes, answer: bytes) -> None:
    done, said = talk(open_to(SOCKS, host), [b"\x05\x00", answer], piece)
    assert done
    assert said == [b"\x05\x01\x00", b"\x05\x01\x00" + address + b"\x23\x84", b""]


@pytest.mark.parametrize("piece", PIECES)
def test_socks_with_a_login(piece: int) -> None:
    done, said = talk(open_to(SOCKS_LOGIN), [b"\x05\x02", b"\x01\x00", ADDRESS], piece)
    assert done
    assert said[:2] == [b"\x05\x02\x00\x02", b"\x01\x03ann\x06canary"]
    # A proxy that wants none, although there is one.
    assert talk(open_to(SOCKS_LOGIN), [b"\x05\x00", ADDRESS], piece)[0]


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 Connection established\r\n\r\n",
        b"HTTP/1.0 200\r\nVia: x\r\nContent-Length: 12\r\n\r\n",
        b"HTTP/1.1 204 OK\n\n",
    ],
)
def test_http(piece: int, answer: bytes) -> None:
    done, said = talk(open_to(WEB), [answer], piece)
    assert done
    assert said == [b"CONNECT broker.example:9092 HTTP/1.1\r\nHost: broker.example:9092\r\n\r\n", b""]
    done, said = talk(open_to(WEB_LOGIN, "::1"), [answer], piece)
    assert done
    assert said[0] == (
        b"CONNECT [::1]:9092 HTTP/1.1\r\nHost: [::1]:9092\r\nProxy-Authorization: Basic YW5uOmNhbmFyeQ==\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("proxy", "answers", "words"),
    [
        (SOCKS, [b"\x05\xff"], "asks for a user and a password: write them into proxy.url"),
        (SOCKS, [b"\x05\x02"], "asks for a user and a password"),
        (SOCKS_LOGIN, [b"\x05\xff"], "takes no user with a password"),
        (SOCKS_LOGIN, [b"\x05\x02", b"\x01\x01"], "refused the user and the password"),
        (WEB, [b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"], "asks for a user and a password"),
        (WEB_LOGIN, [b"HTTP/1.1 407 no\r\nProxy-Authenticate: Basic\r\n\r\n"], "refused the user and the password"),
    ],
)
def test_a_login_that_is_refused(proxy: Proxy, answers: list[bytes], words: str) -> None:
    with pytest.raises(AuthenticationError, match=words) as caught:
        talk(open_to(proxy), answers)
    assert str(proxy) in str(caught.value) and "canary" not in str(caught.value)


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize(
    ("proxy", "answers", "words"),
    [
        (SOCKS, [b"\x05\x00", b"\x05\x01\x00\x01"], "does not say why .SOCKS code 1"),
        (SOCKS, [b"\x05\x00", b"\x05\x02\x00\x01"], "rules do not allow it"),
        (SOCKS, [b"\x05\x00", b"\x05\x04\x00\x01"], "cannot reach the host"),
        (SOCKS, [b"\x05\x00", b"\x05\x05\x00\x01"], "the host refused the connection .SOCKS code 5"),
        (SOCKS, [b"\x05\x00", b"\x05\xff\x00\x01"], "it refused .SOCKS code 255"),
        (SOCKS, [b"\x05\x00", b"\x05\x00\x00\x07"], "unknown kind 7"),
        (SOCKS, [b"\x05\x00", b"\x04\x00\x00\x07"], "no SOCKS5 proxy"),
        (SOCKS, [b"\x00\x5b"], "no SOCKS5 proxy"),
        (SOCKS, [b"HTTP/1.1 400"], "answers in HTTP: write http://"),
        (WEB, [b"HTTP/1.1 502 Bad Gateway\r\n\r\n"], "it answered '502 Bad Gateway'"),
        (WEB, [b"HTTP/1.1 503\r\nx: y\r\n\r\n"], "it answered '503'"),
        (WEB, [b"HTTP/1.1 abc\r\n\r\n"], "no HTTP proxy"),
        (WEB, [b"HTTP/2 200\r\n\r\n"], "no HTTP proxy"),
        (WEB, [b"\x05\xff"], "no HTTP proxy; its answer begins b'\\\\x05"),
        (WEB, [b"SSH-2.0-OpenSSH_9\r\n"], "no HTTP proxy"),
        (WEB, [b"HTTP/1.1 200 " + b"x" * LIMIT], "more than 8192 bytes"),
        (WEB, [b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * LIMIT], "more than 8192 bytes"),
    ],
)
def test_a_refusal(proxy: Proxy, answers: list[bytes], words: str, piece: int) -> None:
    with pytest.raises(NetworkError, match=words):
        talk(open_to(proxy), answers, piece)


@pytest.mark.parametrize("proxy", [SOCKS, WEB])
@pytest.mark.parametrize("host", ["a\r\nX-Evil: 1", "a b", "", "x" * 300, "\x7f", "ü" * 80])
def test_a_broker_with_a_name_that_is_none(proxy: Proxy, host: str) -> None:
    if proxy is WEB and host == "x" * 300:
        host = "x\n"
    with pytest.raises(NetworkError, match="host name"):
        open_to(proxy, host).start()


def test_the_stream_behind_it() -> None:
    tunnel = open_to(SOCKS)
    assert talk(tunnel, [b"\x05\x00", ADDRESS])[0]
    assert received(tunnel) == b""
    tunnel.feed(memoryview(b"abcdef"))
    into = bytearray(4)
    assert tunnel.receive(memoryview(into)) == 4 and into == b"abcd"
    assert received(tunnel) == b"ef"
    assert tunnel.send([memoryview(b"x"), memoryview(b"yz")]) == b"xyz"
    assert tunnel.outgoing() == b"" and tunnel.end() == b""
    assert "socks5 proxy" in open_to(SOCKS).cut_off()


def test_what_follows_the_answer_at_once_is_the_streams() -> None:
    tunnel = open_to(WEB)
    tunnel.start()
    tunnel.feed(memoryview(b"HTTP/1.1 200 OK\r\n\r\nhello"))
    assert tunnel.shake_hands()
    assert received(tunnel) == b"hello"


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize(("proxy", "answers"), [(SOCKS, [b"\x05\x00", ADDRESS]), (WEB, [b"HTTP/1.1 200 OK\r\n\r\n"])])
def test_tls_through_it(proxy: Proxy, answers: list[bytes], piece: int) -> None:
    tunnel, server = proxy.tunnel(lambda: ("elsewhere", 1), client()), Server()
    tunnel.start()
    for answer in answers:
        assert b"\x16\x03" not in tunnel.outgoing(), "no TLS before the proxy has answered"
        for at in range(0, len(answer), piece):
            tunnel.feed(memoryview(answer[at : at + piece]))
            assert not tunnel.shake_hands()
    assert exchange(tunnel, server, piece)
    server.incoming.write(tunnel.send([memoryview(b"abc")]))
    assert server.tls.read(10) == b"abc"
    server.tls.write(b"defg")
    tunnel.feed(memoryview(server.outgoing.read()))
    assert received(tunnel) == b"defg"
    assert "TLS handshake" in tunnel.cut_off()
    assert len(tunnel.end()) > 0


@given(st.sampled_from([SOCKS, SOCKS_LOGIN, WEB, WEB_LOGIN]), st.lists(st.binary(max_size=40), max_size=10))
def test_any_answer_ends_in_an_error_or_waits(proxy: Proxy, answers: list[bytes]) -> None:
    tunnel = open_to(proxy)
    tunnel.start()
    for answer in answers:
        tunnel.feed(memoryview(answer))
        try:
            if tunnel.shake_hands():
                return
        except KafkaError as error:
            assert "canary" not in str(error)
            return


def test_no_secret_in_its_repr() -> None:
    assert "canary" not in repr(SOCKS_LOGIN) + str(WEB_LOGIN)
