"""The forwarder: bytes both ways, ends of either side, ports that cannot be had."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from forebay.testing import EmbeddedBrokerError
from forebay.testing._forward import Forwarder

LOCAL = "127.0.0.1"
WAIT_S = 10.0


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server((LOCAL, 0)) as server:
        server.settimeout(WAIT_S)
        yield server


@pytest.fixture
def forwarder(server: socket.socket) -> Iterator[Forwarder]:
    forwarder = Forwarder(LOCAL, 0, server.getsockname())
    yield forwarder
    forwarder.close()


def test_bytes_go_both_ways_and_an_end_is_passed_on(server: socket.socket, forwarder: Forwarder) -> None:
    with socket.create_connection(forwarder.address, WAIT_S) as client:
        broker, _ = server.accept()
        with broker:
            broker.settimeout(WAIT_S)
            client.sendall(b"question" * 1000)
            assert broker.recv(8000, socket.MSG_WAITALL) == b"question" * 1000
            broker.sendall(b"answer")
            assert client.recv(6, socket.MSG_WAITALL) == b"answer"
        assert client.recv(1) == b""


def test_close_cuts_connections_and_refuses_new_ones(server: socket.socket, forwarder: Forwarder) -> None:
    with socket.create_connection(forwarder.address, WAIT_S) as client:
        broker, _ = server.accept()
        with broker:
            broker.sendall(b"x")
            assert client.recv(1) == b"x"
            forwarder.close()
            assert client.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(forwarder.address, WAIT_S)


def test_a_target_that_refuses_ends_the_connection(server: socket.socket, forwarder: Forwarder) -> None:
    server.close()
    with socket.create_connection(forwarder.address, WAIT_S) as client:
        assert client.recv(1) == b""


def test_a_port_that_is_taken_or_impossible_is_named(server: socket.socket) -> None:
    port = server.getsockname()[1]
    with pytest.raises(EmbeddedBrokerError, match=f"cannot listen on {LOCAL}:{port}: .*in use"):
        Forwarder(LOCAL, port, (LOCAL, 1))
    with pytest.raises(EmbeddedBrokerError, match=f"cannot listen on {LOCAL}:99999"):
        Forwarder(LOCAL, 99999, (LOCAL, 1))
