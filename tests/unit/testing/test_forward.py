"""The forwarder: bytes both ways, ends of either side, ports that cannot be had."""

from __future__ import annotations

import errno
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest

from forebay.testing import _forward
from forebay.testing._forward import Forwarder
from tests.support.pace import HANG_S

LOCAL, LOCAL_6 = "127.0.0.1", "::1"


def receive(end: socket.socket, size: int) -> bytes:
    """``size`` bytes, or what came before the end of the stream."""
    found = b""
    while len(found) < size and (piece := end.recv(size - len(found))):
        found += piece
    return found


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server((LOCAL, 0)) as server:
        server.settimeout(HANG_S)
        yield server


@pytest.fixture
def forwarder(server: socket.socket) -> Iterator[Forwarder]:
    forwarder = Forwarder([LOCAL, LOCAL_6], 0, server.getsockname())
    yield forwarder
    forwarder.close()


@pytest.mark.parametrize("host", [LOCAL, LOCAL_6])
def test_bytes_go_both_ways_and_an_end_is_passed_on(host: str, server: socket.socket, forwarder: Forwarder) -> None:
    assert forwarder.addresses == [(LOCAL, forwarder.port), (LOCAL_6, forwarder.port)]
    with socket.create_connection((host, forwarder.port), HANG_S) as client:
        broker, _ = server.accept()
        with broker:
            broker.settimeout(HANG_S)
            client.sendall(b"question" * 1000)
            assert receive(broker, 8000) == b"question" * 1000
            broker.sendall(b"answer")
            assert receive(client, 6) == b"answer"
        assert client.recv(1) == b""


def test_close_cuts_connections_and_refuses_new_ones(server: socket.socket, forwarder: Forwarder) -> None:
    with socket.create_connection((LOCAL, forwarder.port), HANG_S) as client:
        broker, _ = server.accept()
        with broker:
            broker.sendall(b"x")
            assert client.recv(1) == b"x"
            forwarder.close()
            assert client.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOCAL, forwarder.port), HANG_S)


def test_a_target_that_refuses_ends_the_connection(server: socket.socket, forwarder: Forwarder) -> None:
    server.close()
    with socket.create_connection((LOCAL, forwarder.port), HANG_S) as client:
        assert client.recv(1) == b""


@pytest.mark.parametrize("taken", [LOCAL, LOCAL_6])
def test_a_port_that_is_taken_on_any_of_the_addresses_is_an_error(server: socket.socket, taken: str) -> None:
    family = socket.AF_INET6 if ":" in taken else socket.AF_INET
    with socket.create_server((taken, 0), family=family) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match="in use.*" + taken.replace(".", r"\.")) as failed:
            Forwarder([LOCAL, LOCAL_6], port, server.getsockname())
    assert failed.value.errno == errno.EADDRINUSE
    Forwarder([LOCAL, LOCAL_6], port, server.getsockname()).close()  # nothing was left open


def test_an_address_that_this_machine_does_not_have_is_left_out_unless_it_is_the_first(server: socket.socket) -> None:
    absent = "2001:db8::1"  # of documentation, as ::1 is where IPv6 is switched off
    forwarder = Forwarder([LOCAL, absent], 0, server.getsockname())
    assert [host for host, _port in forwarder.addresses] == [LOCAL]
    forwarder.close()
    with pytest.raises(OSError, match="assign requested address"):
        Forwarder([absent, LOCAL], 0, server.getsockname())


@pytest.mark.parametrize("code", sorted(_forward.ABSENT))
def test_a_machine_without_ipv6(server: socket.socket, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Its kernel may know no such sockets at all."""
    create = socket.create_server

    def without(address: tuple[str, int], *, family: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(code, "no such address")
        return create(address, family=family)

    monkeypatch.setattr(socket, "create_server", without)
    forwarder = Forwarder([LOCAL, LOCAL_6], 0, server.getsockname())
    assert forwarder.addresses == [(LOCAL, forwarder.port)]
    forwarder.close()


def test_a_free_port_is_free_on_all_addresses(server: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    create = socket.create_server
    refused: list[int] = []

    def unlucky(address: tuple[str, int], *, family: int) -> socket.socket:
        if family == socket.AF_INET6 and len(refused) < 3:
            refused.append(address[1])
            raise OSError(errno.EADDRINUSE, "in use")
        return create(address, family=family)

    monkeypatch.setattr(socket, "create_server", unlucky)
    forwarder = Forwarder([LOCAL, LOCAL_6], 0, server.getsockname())
    assert len(refused) == 3
    assert forwarder.addresses == [(LOCAL, forwarder.port), (LOCAL_6, forwarder.port)]
    forwarder.close()


def api_versions(version: int, correlation: int, more: bytes = b"") -> bytes:
    body = struct.pack(">hhih", 18, version, correlation, -1) + more
    return struct.pack(">i", len(body)) + body


def test_api_versions_newer_than_the_mocks_are_refused_in_words_that_can_be_read(
    server: socket.socket, forwarder: Forwarder
) -> None:
    """KIP-511: error 35 in version 0, with the versions to ask with instead; all else is passed on untouched."""
    with socket.create_connection((LOCAL, forwarder.port), HANG_S) as client:
        client.settimeout(HANG_S)
        for version, correlation in ((4, 7), (3, 8)):
            client.sendall(api_versions(version, correlation, b"\0\x03ab\x02c\0"))
            answer = receive(client, 20)
            assert struct.unpack(">iihihhh", answer) == (16, correlation, 35, 1, 18, 0, 2)
        rest = api_versions(2, 9) + api_versions(4, 10)
        client.sendall(rest)
        broker, _ = server.accept()
        with broker:
            broker.settimeout(HANG_S)
            assert receive(broker, len(rest)) == rest


@pytest.mark.parametrize(
    "start", [b"", b"\0\0", struct.pack(">ihhi", 1 << 30, 18, 4, 1), struct.pack(">ihhi", 2, 18, 4, 1)]
)
def test_what_is_no_kafka_is_passed_on(start: bytes, server: socket.socket, forwarder: Forwarder) -> None:
    with socket.create_connection((LOCAL, forwarder.port), HANG_S) as client:
        client.sendall(start)
        client.shutdown(socket.SHUT_WR)
        broker, _ = server.accept()
        with broker:
            broker.settimeout(HANG_S)
            assert receive(broker, 100) == start


def test_it_needs_nothing_of_the_package() -> None:
    """The embedded broker's process loads it from its file, without the package."""
    program = "import runpy, sys; runpy.run_path(sys.argv[1]); print([n for n in sys.modules if 'forebay' in n])"
    command = [sys.executable, "-I", "-S", "-c", program, _forward.__file__]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
