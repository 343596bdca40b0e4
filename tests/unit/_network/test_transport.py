"""Plain TCP, addresses and the wake pipe."""

from __future__ import annotations

import _socket
import os
import select
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from forebay._network.transport import KEEPALIVE, Address, TcpTransport, WakePipe
from tools.ports import free_ports


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def connect(server: socket.socket, send_buffer: int = -1, receive_buffer: int = -1) -> TcpTransport:
    address = Address(socket.AF_INET, server.getsockname())
    return TcpTransport.connect(address, send_buffer, receive_buffer)


def wait(transport: TcpTransport, event: int) -> None:
    poller = select.poll()
    poller.register(transport.fileno(), event)
    assert poller.poll(5000)


def test_options_of_the_socket(server: socket.socket) -> None:
    transport = connect(server, send_buffer=50_000, receive_buffer=60_000)
    plain = connect(server)
    option = transport.socket.getsockopt
    assert option(socket.IPPROTO_TCP, socket.TCP_NODELAY) and option(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert option(socket.SOL_SOCKET, socket.SO_SNDBUF) in (50_000, 100_000)  # Linux doubles it
    assert option(socket.SOL_SOCKET, socket.SO_RCVBUF) in (60_000, 120_000)
    assert plain.socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) not in (50_000, 100_000)
    assert not os.get_inheritable(transport.fileno()) and not transport.socket.getblocking()
    transport.close()
    plain.close()


def test_a_socket_that_is_its_own_peer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may choose the port of a server that is away for our end; here it is made to."""
    [port] = free_ports(1)
    made: list[_socket.socket] = []

    class OwnPeer(_socket.socket):
        def connect(self, address: Any) -> None:
            self.bind(address)
            made.append(self)
            super().connect(address)

    monkeypatch.setattr("forebay._network.transport._socket.socket", OwnPeer)
    with pytest.raises(ConnectionRefusedError, match="refused"):
        TcpTransport.connect(Address(socket.AF_INET, ("127.0.0.1", port)), -1, -1)
    assert [one.fileno() for one in made] == [-1]
    monkeypatch.undo()
    socket.create_server(("127.0.0.1", port)).close()  # the port is free again


def test_the_last_bytes_go_if_the_system_takes_them(server: socket.socket) -> None:
    transport = connect(server)
    far = server.accept()[0]
    wait(transport, select.POLLOUT)
    transport.send_last(b"")
    transport.send_last(b"end")
    assert far.recv(10) == b"end"
    far.close()
    for _ in range(3):
        transport.send_last(b"nobody is there")
    transport.close()
    transport.send_last(b"closed")
    transport.close()
    assert transport.fileno() == -1


def test_an_idle_connection_is_probed() -> None:
    assert len(KEEPALIVE) == 3, "Linux and macOS have all three"
    with socket.create_server(("127.0.0.1", 0)) as server:
        transport = TcpTransport.connect(Address(socket.AF_INET, server.getsockname()), -1, -1)
        assert transport.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        found = [transport.socket.getsockopt(socket.IPPROTO_TCP, option) for option, _value in KEEPALIVE]
        transport.close()
    assert found == [60, 15, 4]


def test_a_connection_that_cannot_begin_leaves_no_descriptor() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError):
        TcpTransport.connect(Address(socket.AF_INET6, ("ff0e::1", 9092, 0, 0)), -1, -1)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (Address(socket.AF_INET, ("10.1.2.3", 9092)), "10.1.2.3:9092"),
        (Address(socket.AF_INET6, ("fe80::1", 9093, 0, 2)), "[fe80::1]:9093"),
    ],
)
def test_an_address_in_words(address: Address, text: str) -> None:
    assert str(address) == text


def test_the_wake_pipe_closes_once_and_by_itself() -> None:
    pipe = WakePipe()
    reader, writer = pipe.reader, pipe.writer
    os.write(writer, b"w")
    assert os.read(reader, 10) == b"w"
    with pytest.raises(BlockingIOError):
        os.read(reader, 10)
    pipe.close()
    pipe.close()
    other = WakePipe()
    reader = other.reader
    del other
    with pytest.raises(OSError):
        os.fstat(reader)
