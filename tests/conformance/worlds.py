"""The places in which the selector's contract is tried: loopback sockets (compiled, interpreted, and with a
transport that is served under the GIL) and memory.  Each gives the same few handles to the test."""

from __future__ import annotations

import functools
import socket
import ssl
import struct
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

import trustme

from forebay._network import selector as imported
from forebay._network.proxy import SOCKS5, Proxy
from forebay._network.tls_context import TlsContexts, TlsSettings
from forebay._network.transport import Address
from forebay.config import Secret
from forebay.testing.clock import ManualClock
from forebay.testing.memory import Link, MemorySelector
from tests.support.forms import as_python
from tests.support.pace import HANG_S

PATIENCE = 2000
"""Turns of up to 25 ms in which what must happen happens."""


_channel = {"forebay._network.channel": as_python("_network.channel")}
interpreted = as_python("_network.selector", _channel)
"""The selector's source run as Python, whether or not it is compiled."""


class Far(Protocol):
    """The other end of a connection."""

    def read(self) -> bytes:
        """What has arrived; the far side takes bytes only here."""
        ...

    def send(self, data: bytes) -> None:
        """Sends all of ``data``."""
        ...

    def close(self) -> None:
        """Ends the stream."""
        ...

    def reset(self) -> None:
        """Breaks the connection."""
        ...


class World:
    """A selector with something to talk to."""

    selector: Any
    address: Address
    refused: Address
    silent: Address
    holds: bool = True
    """Whether what is written stays held until the system has it (else a filter has copied it)."""

    def now(self) -> float:
        raise AssertionError("each world has its time")

    def accept(self) -> Far:
        """The far end of the connection that was opened first and not yet accepted."""
        raise AssertionError("each world has its far ends")

    def end(self) -> None:
        self.selector.close_all()

    def more(self) -> dict[str, Any]:
        """Further arguments of ``Selector.open``."""
        return {}

    def open(self, address: Address | None = None, context: object = None) -> Any:
        """A channel whose connection has begun."""
        return self.selector.open(
            address or self.address,
            **self.more(),
            context=context,
            now=self.now(),
            send_buffer=262144,
            receive_buffer=-1,
        )

    def turn(self, timeout_ms: float = 0) -> list[Any]:
        return list(self.selector.turn(timeout_ms, self.now()))

    def until(self, condition: Callable[[], object]) -> list[Any]:
        """Turns until ``condition`` holds; what the turns reported."""
        news: list[Any] = []
        for _ in range(PATIENCE):
            if condition():
                return news
            news += self.turn(25)
        raise AssertionError("it did not happen")

    def gather(self, far: Far, size: int) -> bytes:
        """The next bytes that arrive at the far end, at least ``size`` of them."""
        got = bytearray()

        def enough() -> bool:
            got.extend(far.read())
            return len(got) >= size

        self.until(enough)
        return bytes(got)

    def closes(self, channel: Any) -> list[Any]:
        """Turns until the channel is closed; what the turns reported."""
        return self.until(lambda: channel.state == 2)

    def receives(self, channel: Any, size: int) -> list[Any]:
        """Turns until the channel holds ``size`` bytes; what the turns reported."""
        return self.until(lambda: channel.received_size >= size)

    def pair(self, context: object = None) -> tuple[Any, Far]:
        """An open channel and its far end."""
        channel = self.open(context=context)
        self.until(lambda: channel.state == 1)
        return channel, self.accept()


class SocketFar:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.setblocking(False)

    def read(self) -> bytes:
        data = bytearray()
        while True:
            try:
                part = self.sock.recv(1 << 20)
            except BlockingIOError:
                return bytes(data)
            if not part:
                return bytes(data)
            data += part

    def send(self, data: bytes) -> None:
        self.sock.setblocking(True)
        self.sock.sendall(data)
        self.sock.setblocking(False)

    def close(self) -> None:
        self.sock.close()

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class SocketWorld(World):
    """Loopback."""

    def __init__(self, module: ModuleType, **options: Any) -> None:
        self.selector = module.SocketSelector(**options)
        self.module = module
        self._server = socket.create_server(("127.0.0.1", 0))
        self._full = socket.create_server(("127.0.0.1", 0), backlog=0)
        self._fillers = [self._fill() for _ in range(3)]
        gone = socket.create_server(("127.0.0.1", 0))
        self.address = _address(self._server)
        self.silent = _address(self._full)
        self.refused = _address(gone)
        gone.close()
        self._fars: list[SocketFar] = []

    def _fill(self) -> socket.socket:
        # A full accept queue: the kernel drops what comes after.
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(self._full.getsockname())
        return filler

    def now(self) -> float:
        return time.monotonic() * 1000

    def accept(self) -> Far:
        self._server.settimeout(HANG_S)
        far = SocketFar(self._server.accept()[0])
        self._fars.append(far)
        return far

    def end(self) -> None:
        super().end()
        for sock in (self._server, self._full, *self._fillers, *(far.sock for far in self._fars)):
            sock.close()


class MemoryFar:
    def __init__(self, link: Link) -> None:
        self.link = link

    def read(self) -> bytes:
        return self.link.take()

    def send(self, data: bytes) -> None:
        self.link.send(data)

    def close(self) -> None:
        self.link.close()

    def reset(self) -> None:
        self.link.reset()


class MemoryWorld(World):
    """No sockets, a manual clock, and far ends whose buffers hold 100 kB."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.selector = MemorySelector(self.clock)
        self.address = Address(socket.AF_INET, ("10.0.0.1", 9092))
        self.silent = Address(socket.AF_INET, ("10.0.0.2", 9092))
        self.refused = Address(socket.AF_INET, ("10.0.0.3", 9092))
        self.selector.listen(self.address, self)
        self.selector.swallow(self.silent)
        self._links: list[Link] = []

    def now(self) -> float:
        return self.clock.now()

    def accept(self) -> Far:
        return MemoryFar(self._links.pop(0))

    def connected(self, link: Link) -> None:
        link.window = 100_000
        self._links.append(link)

    def received(self, link: Link, data: bytes) -> None:
        assert data

    def closed(self, link: Link) -> None:
        assert not link.open


class TlsFar(SocketFar):
    """The other end of a connection with TLS; its handshake goes on in each ``pump``."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        super().__init__(sock)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.waiting = b""
        self.ready = False

    def pump(self) -> None:
        if self.ready or self.sock.fileno() < 0:
            return
        self.incoming.write(super().read())
        try:
            self.tls.do_handshake()
            self.ready = True
        except ssl.SSLWantReadError:
            pass
        self._write(self.outgoing.read())

    def _write(self, data: bytes) -> None:
        if data:
            super().send(data)

    def read(self) -> bytes:
        self.pump()
        self.incoming.write(super().read())
        data = bytearray()
        while True:
            try:
                part = self.tls.read(1 << 20)
            except ssl.SSLWantReadError:
                return bytes(data)
            if not part:
                return bytes(data)
            data += part

    def send(self, data: bytes) -> None:
        self.tls.write(data)
        self._write(self.outgoing.read())


class HandshakeWorld(SocketWorld):
    """Loopback with a handshake before the stream; a far end has ``pump`` and ``ready``."""

    holds = False

    def __init__(self, module: ModuleType, **options: Any) -> None:
        super().__init__(module, **options)
        self._pending: list[Any] = []

    def far(self, sock: socket.socket) -> Any:
        """The far end of an accepted connection."""
        raise AssertionError("each of them has its own")

    def turn(self, timeout_ms: float = 0) -> list[Any]:
        self._pump()
        return super().turn(min(timeout_ms, 5) if any(not far.ready for far in self._pending) else timeout_ms)

    def accept(self) -> Far:
        self.until(lambda: self._pending and self._pending[0].ready)
        far: Far = self._pending.pop(0)
        return far

    def _pump(self) -> None:
        self._server.setblocking(False)
        while True:
            try:
                sock = self._server.accept()[0]
            except BlockingIOError:
                break
            far = self.far(sock)
            self._fars.append(far)
            self._pending.append(far)
        for known in self._fars:
            known.pump()  # type: ignore[attr-defined]  # the far ends of this world have it


class TlsWorld(HandshakeWorld):
    """Loopback with TLS; ``tickets`` of a session follow each handshake."""

    def __init__(self, module: ModuleType, tickets: int = 0, **options: Any) -> None:
        settings = TlsSettings(certificates=Secret(authority().cert_pem.bytes().decode()))
        super().__init__(module, **options)
        self._contexts = TlsContexts(settings, lambda: time.time() * 1000)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.num_tickets = tickets
        authority().issue_cert("localhost").configure_cert(self._context)

    def far(self, sock: socket.socket) -> TlsFar:
        return TlsFar(sock, self._context)

    def more(self) -> dict[str, Any]:
        return {"stream_filter": self._contexts.filter("localhost")}


class ProxyFar(SocketFar):
    """The other end of a connection through a SOCKS5 proxy: the proxy first, then the broker."""

    DIALOGUE = ((3, b"\x05\x00"), (4 + 1 + 6 + 2, b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x01"))

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._left = list(self.DIALOGUE)
        self._early = b""

    @property
    def ready(self) -> bool:
        return not self._left

    def pump(self) -> None:
        if self.ready or self.sock.fileno() < 0:
            return
        self._early += super().read()
        while self._left and len(self._early) >= self._left[0][0]:
            size, answer = self._left.pop(0)
            self._early = self._early[size:]
            super().send(answer)

    def read(self) -> bytes:
        early, self._early = self._early, b""
        return early + super().read()


class ProxyWorld(HandshakeWorld):
    """Loopback through a proxy, without TLS."""

    def far(self, sock: socket.socket) -> ProxyFar:
        return ProxyFar(sock)

    def more(self) -> dict[str, Any]:
        return {"stream_filter": Proxy(SOCKS5, "127.0.0.1", 1).tunnel(lambda: ("broker", 1), None)}


@functools.cache
def authority() -> trustme.CA:
    """The certificate authority of these tests."""
    return trustme.CA()


WORLDS: dict[str, Callable[[], World]] = {
    "imported": lambda: SocketWorld(imported),
    "interpreted": lambda: SocketWorld(interpreted),
    "tls": lambda: TlsWorld(imported),
    "tls-interpreted": lambda: TlsWorld(interpreted),
    "proxy": lambda: ProxyWorld(imported),
    "proxy-interpreted": lambda: ProxyWorld(interpreted),
    "memory": MemoryWorld,
}


def _address(server: socket.socket) -> Address:
    return Address(socket.AF_INET, server.getsockname())
