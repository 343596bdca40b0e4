"""One TCP connection's socket, the address of its peer, and what may be between its bytes and a stream (TLS).

The selector reads and writes the descriptor itself, without the GIL.  Owned by the sender's thread.
"""

from __future__ import annotations

import _socket  # never replaced by gevent
import errno
import os
import socket
import struct
from typing import Any, NamedTuple, Protocol


class Address(NamedTuple):
    """A numeric socket address: needs no look-up."""

    family: int
    sockaddr: tuple[Any, ...]

    def __str__(self) -> str:
        host, port = self.sockaddr[0], self.sockaddr[1]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


class StreamFilter(Protocol):
    """What is between a descriptor's bytes and a stream: TLS.  Does no I/O; owned by the sender's thread.

    Any exception that a method raises ends the connection.  A KafkaError says so in its own words.
    """

    def start(self) -> None:
        """The connection is there; ``outgoing`` has the first bytes of the handshake."""
        ...

    def feed(self, data: memoryview) -> None:
        """Takes bytes that came; nothing of ``data`` is kept."""
        ...

    def shake_hands(self) -> bool:
        """Goes on with the handshake; True once it is over."""
        ...

    def receive(self, into: memoryview) -> int:
        """Fills ``into`` from the front with bytes of the stream: how many, 0 for none now, -1 at its end."""
        ...

    def send(self, buffers: list[memoryview]) -> bytes:
        """What is to be written for these bytes of the stream; includes what ``outgoing`` had."""
        ...

    def outgoing(self) -> bytes:
        """What the filter wants written for itself."""
        ...

    def end(self) -> bytes:
        """The last bytes to be written, before the connection is closed; never raises."""
        ...

    def cut_off(self) -> str:
        """What to say of a peer that closed the connection before the handshake was over."""
        ...


class TcpTransport:
    """A TCP connection's socket."""

    def __init__(self, sock: _socket.socket) -> None:
        self.socket = sock

    @classmethod
    def connect(cls, address: Address, send_buffer: int, receive_buffer: int) -> TcpTransport:
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
                pass  # it goes on in the background; the socket becomes writable, and SO_ERROR has the result
            if sock.getsockname()[:2] == address.sockaddr[:2]:
                raise _joined_with_itself(sock)
        except BaseException:
            sock.close()
            raise
        return cls(sock)

    def fileno(self) -> int:
        return self.socket.fileno()

    def send_last(self, data: bytes) -> None:
        """Writes what the system takes at once; never raises."""
        if data:
            try:
                self.socket.send(data)
            except OSError:
                pass  # the connection is given up in any case

    def close(self) -> None:
        try:
            self.socket.close()
        except OSError:
            pass  # the descriptor is closed in any case, and a reset does not matter any more


def _joined_with_itself(sock: _socket.socket) -> ConnectionRefusedError:
    """The system chose the peer's port for our end: nobody listens there, and TCP lets a socket connect to itself.

    Seen on the loopback.  A broker cannot start on its port while such a connection exists, nor while TCP remembers it.
    So it ends by a reset, which TCP does not remember.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


KEEPALIVE = tuple(
    (option, value)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
    if (option := getattr(socket, name, getattr(socket, "TCP_KEEPALIVE", None) if name == "TCP_KEEPIDLE" else None))
)
"""TCP options and their values: an idle connection is probed after 60 s, then every 15 s, and ends after four.

Load balancers of clouds forget a connection that was idle for 4 to 6 minutes, and the systems' defaults are two hours.
macOS has another name for the first.
"""


def _set_options(sock: _socket.socket, send_buffer: int, receive_buffer: int) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE:
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    if send_buffer != -1:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    if receive_buffer != -1:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)


class WakePipe:
    """A non-blocking pipe; open as long as a thread may write to it, so that no byte goes to a reused descriptor."""

    # Here, because __del__ runs also where a signal handler raised before the first line of __init__.
    reader = -1
    writer = -1

    def __init__(self) -> None:
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
