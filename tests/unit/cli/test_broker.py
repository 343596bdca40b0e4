"""``forebay broker``: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import socket
import struct
import threading

import pytest

from forebay.cli.broker import run
from forebay.errors import IllegalArgumentError
from forebay.testing import EmbeddedBrokerError
from tests.support.pace import HANG_S


class Printed:
    """Takes the address and ends the command, as a user's Ctrl-C would once it is printed."""

    def __init__(self, number: signal.Signals, *, at: str = "") -> None:
        self.lines: list[str] = []
        self.connected = False
        self.brokers: dict[int, str] = {}
        self._number = number
        self._at = at

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        host, _, port = (self._at or line.split(",")[-1]).rpartition(":")
        try:
            self.brokers = ask_metadata((host.strip("[]"), int(port)))
            self.connected = True
        finally:
            os.kill(os.getpid(), self._number)


def ask_metadata(address: tuple[str, int]) -> dict[int, str]:
    """Metadata v1 by hand: each node's address, as clients are told."""
    with socket.create_connection(address, HANG_S) as connection, connection.makefile("rb") as stream:
        request = struct.pack(">hhihi", 3, 1, 1, -1, 0)
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", stream.read(4))
        body = stream.read(size)
    (count,) = struct.unpack_from(">i", body, 4)
    at, found = 8, {}
    for _ in range(count):
        node, length = struct.unpack_from(">ih", body, at)
        host = body[at + 6 : at + 6 + length].decode()
        (port,) = struct.unpack_from(">i", body, at + 6 + length)
        found[node] = f"{host}:{port}"
        at += 6 + length + 4 + 2  # behind it a null for the rack
    return found


@pytest.fixture
def free() -> int:
    """The first of two ports that are free on both loopbacks."""
    for _ in range(20):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            first = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            stack.enter_context(socket.create_server(("::1", first), family=socket.AF_INET6))
            stack.enter_context(socket.create_server(("127.0.0.1", first + 1)))
            stack.enter_context(socket.create_server(("::1", first + 1), family=socket.AF_INET6))
            return int(first)
    raise AssertionError("no two ports in a row are free")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_prints_an_address_that_answers_and_ends_at_a_signal(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    printed = Printed(number)
    assert run(write=printed, topics=["a", "b:6"]) == 0
    assert len(printed.lines) == 1
    assert printed.connected
    assert signal.getsignal(number) is before
    assert threading.active_count() < 20


@pytest.mark.parametrize("at", ["127.0.0.1", "[::1]", "localhost"])
def test_a_chosen_port_is_listened_on_by_the_first_node_on_both_loopbacks(free: int, at: str) -> None:
    printed = Printed(signal.SIGINT, at=f"{at}:{free}")
    assert run(port=free, nodes=2, write=printed) == 0
    assert printed.lines == [f"127.0.0.1:{free},127.0.0.1:{free + 1}"]
    assert printed.brokers == {1: f"127.0.0.1:{free}", 2: f"127.0.0.1:{free + 1}"}


def test_a_free_port_is_listened_on_on_both_loopbacks() -> None:
    found: list[dict[int, str]] = []

    def write(line: str) -> None:
        try:
            found.extend(ask_metadata((host, int(line.split(":")[1]))) for host in ("127.0.0.1", "::1"))
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    assert run(write=write) == 0
    assert found[0] == found[1] and len(found[0]) == 1


@pytest.mark.parametrize("host", ["", "::"])
def test_everywhere_is_both_families_and_advertises_the_name_of_the_machine(free: int, host: str) -> None:
    for at in ("127.0.0.1", "[::1]"):
        printed = Printed(signal.SIGINT, at=f"{at}:{free}")
        assert run(host, free, write=printed) == 0
        assert printed.brokers == {1: f"{platform.node()}:{free}"}


@pytest.mark.parametrize(
    ("advertise", "line", "told"),
    [
        (
            "kafka.example:19092",
            "kafka.example:19092,kafka.example:19093",
            ["kafka.example:19092", "kafka.example:19093"],
        ),
        ("localhost", "localhost:{0},localhost:{1}", ["localhost:{0}", "localhost:{1}"]),
        ("[2001:db8::7]:9", "[2001:db8::7]:9,[2001:db8::7]:10", ["2001:db8::7:9", "2001:db8::7:10"]),
    ],
)
def test_what_is_advertised_is_what_clients_are_told(free: int, advertise: str, line: str, told: list[str]) -> None:
    """For containers and forwarded ports: it listens where it would listen otherwise."""
    printed = Printed(signal.SIGINT, at=f"127.0.0.1:{free}")
    assert run(port=free, nodes=2, advertise=advertise, write=printed) == 0
    assert printed.lines == [line.format(free, free + 1)]
    assert [printed.brokers[node] for node in (1, 2)] == [each.format(free, free + 1) for each in told]


@pytest.mark.parametrize("text", ["a:0", "a:65535", "a:x", ":9092", "::1", "[::1", "a b", "http://a:1", "a:"])
def test_an_advertised_address_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(IllegalArgumentError, match=r"write HOST or HOST:PORT, with an IPv6 address in brackets"):
        run(advertise=text, nodes=2)


def test_a_port_with_no_room_for_all_nodes_is_refused() -> None:
    with pytest.raises(IllegalArgumentError, match="port 65535 is too high for 2 node"):
        run(port=65535, nodes=2)


def test_a_port_that_is_taken_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedBrokerError, match=f"cannot listen on 127.0.0.1:{port}: .*port 0 takes a free one"):
            run(port=port)


@pytest.mark.parametrize("text", [":3", "a:", "a:x", "a:-1"])
def test_a_topic_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(IllegalArgumentError, match="write a name, or a name and its partitions"):
        run(topics=[text])


def test_a_topic_without_partitions_is_refused() -> None:
    with pytest.raises(IllegalArgumentError, match="'a' needs at least 1 partition, not 0"):
        run(topics=["a:0"])
