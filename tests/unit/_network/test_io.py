"""The interpreted primitives by themselves; the compiled ones are held to the same through every selector test."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from forebay._network import _io
from forebay._network.transport import WakePipe


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    yield near, far
    near.close()
    far.close()


def waiting(fd: int) -> bytes:
    try:
        return os.read(fd, 100)
    except BlockingIOError:
        return b""


def test_a_byte_is_written_only_to_one_who_waits_and_only_once() -> None:
    pipe = WakePipe()
    pollset = _io.new_pollset(pipe.reader)
    _io.wake_pollset(pollset, pipe.writer)
    assert waiting(pipe.reader) == b""
    _io.wait_ready(pollset, 60_000)  # the flag was up: no wait
    pollset.polling = 1
    for _ in range(3):
        _io.wake_pollset(pollset, pipe.writer)
    assert waiting(pipe.reader) == b"w"
    pipe.close()


def test_a_poll_set_stays_dense_whatever_is_removed() -> None:
    pollset = _io.new_pollset(-1)
    sockets = [_io.new_socket(number) for number in range(5)]
    for sock in sockets:
        _io.add_socket(pollset, sock)
    for gone in (sockets[1], sockets[4], sockets[0]):
        _io.remove_socket(pollset, gone)
        assert gone.index == -1
        assert [sock.index for sock in pollset.sockets] == list(range(pollset.size))
    assert {sock.fd for sock in pollset.sockets} == {2, 3}


def test_more_buffers_than_one_call_takes(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    sock = _io.new_socket(near.fileno())
    for number in range(3 * _io.VECTOR + 1):
        _io.hold(sock, b"%03d" % number)
    assert _io.send_some(sock) == 0 and sock.events == _io.WROTE
    assert far.recv(1 << 16) == b"".join(b"%03d" % number for number in range(3 * _io.VECTOR + 1))
    _io.release_written(sock)
    assert sock.count == 0


def test_receiving_says_read_ended_or_why_not(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    sock = _io.new_socket(near.fileno())
    data = bytearray(4)
    sock.input, sock.capacity = memoryview(data), 4
    assert (_io.receive_some(sock), sock.events) == (0, 0)
    far.sendall(b"abcdef")
    assert (_io.receive_some(sock), sock.events, sock.end, bytes(data)) == (0, _io.READ, 4, b"abcd")
    assert (_io.receive_some(sock), sock.end) == (0, 4)
    sock.end = sock.events = 0
    far.close()
    _io.receive_some(sock)
    _io.receive_some(sock)
    assert (sock.events, sock.end, bytes(data[:2])) == (_io.READ | _io.ENDED, 2, b"ef")
    sock.fd, sock.end = -1, 0
    assert _io.receive_some(sock) != 0
