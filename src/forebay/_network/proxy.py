"""A proxy between here and the brokers: SOCKS5 (RFC 1928, RFC 1929) and HTTP's CONNECT (RFC 9110).

The two dialogues are generators without I/O.  They yield bytes for the proxy, or none if they need more input, and
find its answers in a buffer.  ``Tunnel`` carries one of them, then the stream of the connection, which may be TLS.  The
proxy looks the broker's name up.  The module is imported only where ``proxy.url`` is given.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, NamedTuple

from forebay._network.transport import Address
from forebay.errors import AuthenticationError, NetworkError

if TYPE_CHECKING:
    from forebay._network.transport import StreamFilter

LIMIT = 8192
"""Bytes of a proxy's answer."""
SOCKS5, HTTP = "socks5", "http"

Dialogue = Generator[bytes, None, None]
Target = Callable[[], tuple[str, int]]
"""Host and port; it may raise a KafkaError, which ends the connection."""

_SOCKS_REFUSALS = {
    1: "it failed, and does not say why",
    2: "its rules do not allow it",
    3: "it cannot reach the network",
    4: "it cannot reach the host, or does not know its name",
    5: "the host refused the connection",
    6: "the connection took too long",
    7: "it knows no CONNECT",
    8: "it takes no address of this kind",
}
"""By the reply code of RFC 1928, section 6."""
_SOCKS_NO_LOGIN, _SOCKS_LOGIN = 0, 2
_SOCKS_IPV4, _SOCKS_NAME, _SOCKS_IPV6 = 1, 3, 4


class ProxyAddress(Address):
    """An address that says whose it is."""

    def __str__(self) -> str:
        return f"the proxy {super().__str__()}"


class Proxy(NamedTuple):
    """What ``proxy.url`` says.

    ``password`` is a ``Secret``; it is None if and only if ``username`` is.
    """

    kind: str
    host: str
    port: int
    username: str | None = None
    password: Any = None

    def __str__(self) -> str:
        return f"{self.kind}://{_authority(self.host, self.port)}"

    def __repr__(self) -> str:
        return f"<Proxy {self}>"

    def named(self, address: Address) -> Address:
        """An address of the proxy, such that messages call it one."""
        return ProxyAddress(*address)

    def tunnel(self, target: Target, inner: StreamFilter | None) -> Tunnel:
        """The filter of a connection to ``target`` through this proxy; ``inner`` is that of its stream (TLS)."""
        return Tunnel(self, target, inner)


class Tunnel:
    """A ``StreamFilter``: the dialogue with the proxy, and then the stream behind it."""

    def __init__(self, proxy: Proxy, target: Target, inner: StreamFilter | None) -> None:
        self._proxy = proxy
        self._inner = inner
        self._buffer = bytearray()
        """What came from the proxy and was not used yet; without an inner filter, also the stream's bytes."""
        self._target = target
        self._dialogue: Dialogue | None = None
        self._out = b""

    def start(self) -> None:
        dialogue = socks5 if self._proxy.kind == SOCKS5 else http_connect
        self._dialogue = dialogue(self._proxy, *self._target(), self._buffer)
        self._step()

    def feed(self, data: memoryview) -> None:
        if self._dialogue is None and self._inner is not None:
            self._inner.feed(data)
        else:
            self._buffer += data

    def shake_hands(self) -> bool:
        if self._dialogue is not None and not self._step():
            return False
        return self._inner is None or self._inner.shake_hands()

    def receive(self, into: memoryview) -> int:
        if self._inner is not None:
            return self._inner.receive(into)
        size = min(len(into), len(self._buffer))
        into[:size] = self._buffer[:size]
        del self._buffer[:size]
        return size

    def send(self, buffers: list[memoryview]) -> bytes:
        if self._inner is not None:
            return self._inner.send(buffers)
        return self.outgoing() + b"".join(buffers)

    def outgoing(self) -> bytes:
        out, self._out = self._out, b""
        return out + self._inner.outgoing() if self._dialogue is None and self._inner is not None else out

    def end(self) -> bytes:
        return self._inner.end() if self._dialogue is None and self._inner is not None else b""

    def silence(self) -> str:
        """As that of TLS, once the proxy has made the connection."""
        inner: Any = self._inner
        return inner.silence() if self._dialogue is None and inner is not None else ""

    def cut_off(self) -> str:
        if self._dialogue is None and self._inner is not None:
            return self._inner.cut_off()
        user = "" if self._proxy.username is None else ", and does it know the user of proxy.url"
        return f"it closed the connection before it had answered; is it a {self._proxy.kind} proxy{user}?"

    def _step(self) -> bool:
        """Goes on with the dialogue; True once it is over."""
        assert self._dialogue is not None
        try:
            self._out += next(self._dialogue)
        except StopIteration:
            self._dialogue = None
            if self._inner is not None:
                # A server may have spoken first: what stands behind the proxy's answer is the stream's.
                self._inner.start()
                self._inner.feed(memoryview(bytes(self._buffer)))
                self._buffer.clear()
            return True
        return False


def socks5(proxy: Proxy, host: str, port: int, buffer: bytearray) -> Dialogue:
    """Asks a SOCKS5 proxy for a connection.

    Args:
        host: a name, which the proxy looks up, or a numeric address.
        buffer: gets the proxy's bytes; what follows its answer is left there.

    Raises:
        AuthenticationError: it does not let us in.
        NetworkError: it cannot connect, or what answers is no SOCKS5 proxy.
    """
    destination = _socks_address(host)
    methods = bytes([_SOCKS_NO_LOGIN] if proxy.username is None else [_SOCKS_NO_LOGIN, _SOCKS_LOGIN])
    yield bytes([5, len(methods)]) + methods
    version, method = yield from _take(buffer, 2)
    if version != 5:
        raise NetworkError(_not_socks(bytes([version, method]), host, port))
    if method == _SOCKS_LOGIN and proxy.username is not None:
        yield from _socks_login(proxy, buffer)
    elif method != _SOCKS_NO_LOGIN:
        raise AuthenticationError(
            f"the proxy {proxy} asks for a user and a password: write them into proxy.url"
            if proxy.username is None
            else f"the proxy {proxy} takes no user with a password, and no connection without one either"
        )
    yield bytes([5, 1, 0]) + destination + port.to_bytes(2, "big")
    version, code, _reserved, kind = yield from _take(buffer, 4)
    if version != 5:
        raise NetworkError(_not_socks(bytes([version, code]), host, port))
    if code != 0:
        raise NetworkError(_through(host, port, f"{_SOCKS_REFUSALS.get(code, 'it refused')} (SOCKS code {code})"))
    if kind == _SOCKS_NAME:
        size = (yield from _take(buffer, 1))[0]
    elif kind in (_SOCKS_IPV4, _SOCKS_IPV6):
        size = 4 if kind == _SOCKS_IPV4 else 16
    else:
        raise NetworkError(_through(host, port, f"its answer has an address of the unknown kind {kind}"))
    yield from _take(buffer, size + 2)  # the address that it connects from: nobody needs it


def _socks_login(proxy: Proxy, buffer: bytearray) -> Dialogue:
    yield _socks_credentials(proxy)
    _version, status = yield from _take(buffer, 2)
    if status != 0:
        raise AuthenticationError(f"the proxy {proxy} refused the user and the password of proxy.url")


def _socks_credentials(proxy: Proxy) -> bytes:
    # Of a frame of its own, as each text with a password: the frame of an error would show it.
    username, password = (proxy.username or "").encode(), str(proxy.password.reveal()).encode()
    return bytes([1, len(username)]) + username + bytes([len(password)]) + password


def _socks_address(host: str) -> bytes:
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        name = _name(host)
        if len(name) > 255:
            raise NetworkError(f"a host name of {len(name)} bytes is too long for SOCKS") from None
        return bytes([_SOCKS_NAME, len(name)]) + name
    return bytes([_SOCKS_IPV4 if number.version == 4 else _SOCKS_IPV6]) + number.packed


def _not_socks(begin: bytes, host: str, port: int) -> str:
    if begin == b"HT":
        return _through(host, port, "it answers in HTTP: write http:// in proxy.url")
    return _through(host, port, f"it is no SOCKS5 proxy; its answer begins {begin!r}")


def http_connect(proxy: Proxy, host: str, port: int, buffer: bytearray) -> Dialogue:
    """Asks an HTTP proxy for a connection (CONNECT); arguments and errors as those of ``socks5``."""
    target = _authority(_name(host).decode("ascii"), port)
    yield _connect_request(proxy, target)
    first = yield from _line(buffer, LIMIT, b"HTTP/")
    code = first[9:12]
    if not first.startswith(b"HTTP/1.") or not code.isdigit():
        raise NetworkError(_through(host, port, f"it is no HTTP proxy; its answer begins {first[:40]!r}"))
    if code == b"407":
        raise AuthenticationError(
            f"the proxy {proxy} asks for a user and a password: write them into proxy.url (HTTP 407)"
            if proxy.username is None
            else f"the proxy {proxy} refused the user and the password of proxy.url (HTTP 407)"
        )
    if not code.startswith(b"2"):
        reason = first[9:89].decode("ascii", "replace").strip()
        raise NetworkError(_through(host, port, f"it answered {reason!r}"))
    left = LIMIT - len(first)
    while line := (yield from _line(buffer, left)):
        left -= len(line)


def _connect_request(proxy: Proxy, target: str) -> bytes:
    request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if proxy.username is not None:
        login = base64.b64encode(f"{proxy.username}:{proxy.password.reveal()}".encode()).decode()
        request += f"Proxy-Authorization: Basic {login}\r\n"
    return (request + "\r\n").encode()


def _take(buffer: bytearray, size: int) -> Generator[bytes, None, bytes]:
    """The next ``size`` bytes, once they are there."""
    while len(buffer) < size:
        yield b""
    taken = bytes(buffer[:size])
    del buffer[:size]
    return taken


def _line(buffer: bytearray, limit: int, begin: bytes = b"") -> Generator[bytes, None, bytes]:
    """The next line without its end; at most ``limit`` bytes of it are waited for.

    Args:
        begin: how it has to begin.  Else its first bytes are all of it: something else may send no end of a line.
    """
    seen = 0
    while (at := buffer.find(b"\n", seen)) < 0:
        seen = len(buffer)
        if not begin.startswith(bytes(buffer[: len(begin)])) or seen > limit:
            break
        yield b""
    if at > limit or (at < 0 and seen > limit):
        raise NetworkError(f"the proxy's answer has more than {LIMIT} bytes")
    end = len(buffer) if at < 0 else at + 1
    line = bytes(buffer[:end])
    del buffer[:end]
    return line.rstrip(b"\r\n")


def _name(host: str) -> bytes:
    """A host as it goes to the proxy.  It may come from a broker's answer, so it must not end a header's line.

    Raises:
        NetworkError: no name can be like this.
    """
    try:
        name = host.encode("ascii") if host.isascii() else host.encode("idna")
    except UnicodeError as error:
        raise NetworkError(f"{host[:100]!r} is no host name: {error}") from None
    if not name or any(sign <= 0x20 or sign == 0x7F for sign in name):
        raise NetworkError(f"{host[:100]!r} is no host name")
    return name


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _through(host: str, port: int, why: str) -> str:
    return f"cannot connect to {_authority(host, port)} through the proxy: {why}"
