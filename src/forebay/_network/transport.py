"""One non-blocking byte stream, and the address of its peer.

A transport hides how bytes get on the wire: ``send(buffers)`` takes what it can, ``receive`` gives what is there,
``wants`` names the events that it waits for, and ``pending`` counts bytes inside it, which poll(2) does not see.
The selector reads and writes the descriptor of a ``native`` transport itself, without the GIL.  It serves any other
transport (TLS) through these methods, under the GIL.  Owned by the sender thread.
"""

from __future__ import annotations

import _socket  # never replaced by gevent
import os
import socket
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from forebay._network._io import READABLE, WRITABLE

BLOCKED = -1
"""What ``receive`` returns if there are no bytes now."""


class Address(NamedTuple):
    """A numeric socket address: needs no look-up."""

    family: int
    sockaddr: tuple[Any, ...]

    def __str__(self) -> str:
        host, port = self.sockaddr[0], self.sockaddr[1]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


class Transport(Protocol):
    """See the module's text.  Errors of the socket are raised as OSError."""

    @property
    def native(self) -> bool:
        """True: the bytes on the descriptor are the stream itself, and the selector moves them."""
        ...

    @property
    def wants(self) -> int:
        """The events that the transport waits for, of READABLE | WRITABLE; never 0 while it is open."""
        ...

    @property
    def pending(self) -> int:
        """Bytes that ``receive`` can give although the socket is not ready."""
        ...

    def fileno(self) -> int:
        """The descriptor to poll; -1 once closed."""
        ...

    def finish_connect(self) -> bool:
        """Goes on with connection and handshake; True once the stream is open."""
        ...

    def send(self, buffers: list[memoryview]) -> int:
        """Takes bytes from the front of ``buffers``; how many (0: not now)."""
        ...

    def receive(self, into: memoryview) -> int:
        """Fills ``into`` from the front; how many bytes, 0 at the peer's end of the stream, or BLOCKED."""
        ...

    def close(self) -> None:
        """Closes the descriptor; never raises."""
        ...


Connector = Callable[[Address, int, int], Transport]
"""(address, send buffer bytes, receive buffer bytes) to a transport whose connection has begun; raises OSError."""


class PlainTransport:
    """TCP without encryption."""

    native = True
    pending = 0

    def __init__(self, sock: _socket.socket) -> None:
        self.socket = sock
        self._connected = False

    @classmethod
    def connect(cls, address: Address, send_buffer: int, receive_buffer: int) -> PlainTransport:
        """Begins a connection without waiting for it.

        Args:
            address: numeric.
            send_buffer: SO_SNDBUF in bytes, -1 for the system's (``send.buffer.bytes``).
            receive_buffer: SO_RCVBUF in bytes, -1 for the system's (``receive.buffer.bytes``).

        Raises:
            OSError: no descriptor left, an address family that is not there, refused at once.
        """
        sock = _socket.socket(address.family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            _set_options(sock, send_buffer, receive_buffer)
            try:
                sock.connect(address.sockaddr)
            except (BlockingIOError, InterruptedError):
                pass  # it goes on in the background; finish_connect() gives the result
        except BaseException:
            sock.close()
            raise
        return cls(sock)

    @property
    def wants(self) -> int:
        return READABLE if self._connected else WRITABLE

    def fileno(self) -> int:
        return self.socket.fileno()

    def finish_connect(self) -> bool:
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        self._connected = True
        return True

    def send(self, buffers: list[memoryview]) -> int:
        try:
            return self.socket.sendmsg(buffers)
        except (BlockingIOError, InterruptedError):
            return 0

    def receive(self, into: memoryview) -> int:
        try:
            return self.socket.recv_into(into)
        except (BlockingIOError, InterruptedError):
            return BLOCKED

    def close(self) -> None:
        try:
            self.socket.close()
        except OSError:
            pass  # the descriptor is closed in any case, and a reset does not matter any more


def _set_options(sock: _socket.socket, send_buffer: int, receive_buffer: int) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if send_buffer != -1:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    if receive_buffer != -1:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)


class WakePipe:
    """A non-blocking pipe; open as long as a thread may write to it, so that no byte goes to a reused descriptor."""

    def __init__(self) -> None:
        self.reader = self.writer = -1  # first: __del__ runs also where no pipe is to be had
        try:
            self.reader, self.writer = os.pipe()
            os.set_blocking(self.reader, False)
            os.set_blocking(self.writer, False)
        except BaseException:
            self.close()  # not left to __del__: the error's traceback keeps this object
            raise

    def close(self) -> None:
        """Closes both ends; may be called again."""
        ends = (self.reader, self.writer)
        self.reader = self.writer = -1
        for end in ends:
            if end >= 0:
                os.close(end)

    def __del__(self) -> None:
        self.close()
