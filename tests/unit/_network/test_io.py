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
    bank = _io.new_bank(pipe.reader)
    _io.wake_bank(bank, pipe.writer)
    assert waiting(pipe.reader) == b""
    _io.wait_ready(bank, 60_000)  # the flag was up: no wait
    bank.polling = 1
    for _ in range(3):
        _io.wake_bank(bank, pipe.writer)
    assert waiting(pipe.reader) == b"w"
    pipe.close()


def test_a_bank_stays_dense_whatever_is_removed() -> None:
    bank = _io.new_bank(-1)
    ports = [_io.new_port(number, True) for number in range(5)]
    for port in ports:
        _io.add_port(bank, port)
    for gone in (ports[1], ports[4], ports[0]):
        _io.remove_port(bank, gone)
        assert gone.index == -1
        assert [port.index for port in bank.ports] == list(range(bank.size))
    assert {port.fd for port in bank.ports} == {2, 3}


def test_more_buffers_than_one_call_takes(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    port = _io.new_port(near.fileno(), True)
    for number in range(3 * _io.VECTOR + 1):
        _io.hold(port, b"%03d" % number)
    assert _io.send_some(port) == 0 and port.events == _io.WROTE
    assert far.recv(1 << 16) == b"".join(b"%03d" % number for number in range(3 * _io.VECTOR + 1))
    _io.release_written(port)
    assert port.count == 0


def test_receiving_says_read_ended_or_why_not(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    port = _io.new_port(near.fileno(), True)
    data = bytearray(4)
    port.input, port.capacity = memoryview(data), 4
    assert (_io.receive_some(port), port.events) == (0, 0)
    far.sendall(b"abcdef")
    assert (_io.receive_some(port), port.events, port.end, bytes(data)) == (0, _io.READ, 4, b"abcd")
    assert (_io.receive_some(port), port.end) == (0, 4)
    port.end = port.events = 0
    far.close()
    _io.receive_some(port)
    _io.receive_some(port)
    assert (port.events, port.end, bytes(data[:2])) == (_io.READ | _io.ENDED, 2, b"ef")
    port.fd, port.end = -1, 0
    assert _io.receive_some(port) != 0
