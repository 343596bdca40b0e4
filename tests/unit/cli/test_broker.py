"""``forebay broker``: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import os
import signal
import socket
import threading

import pytest

from forebay.cli.broker import run
from forebay.errors import IllegalArgumentError
from forebay.testing import EmbeddedBrokerError


class Printed:
    """Takes the address and ends the command, as a user's Ctrl-C would once it is printed."""

    def __init__(self, number: signal.Signals) -> None:
        self.lines: list[str] = []
        self.connected = False
        self._number = number

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        host, _, port = line.split(",")[-1].rpartition(":")
        with socket.create_connection((host, int(port)), 10):
            self.connected = True
        os.kill(os.getpid(), self._number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_prints_an_address_that_answers_and_ends_at_a_signal(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    printed = Printed(number)
    assert run(write=printed, topics=["a", "b:6"]) == 0
    assert len(printed.lines) == 1
    assert printed.connected
    assert signal.getsignal(number) is before
    assert threading.active_count() < 20


def test_a_chosen_port_is_listened_on_by_the_first_node() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    printed = Printed(signal.SIGINT)
    assert run(port=port, write=printed) == 0
    assert printed.lines == [f"127.0.0.1:{port}"]
    assert printed.connected


def test_a_port_that_is_taken_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedBrokerError, match=f"cannot listen on 127.0.0.1:{port}"):
            run(port=port)


@pytest.mark.parametrize("text", [":3", "a:", "a:x", "a:-1"])
def test_a_topic_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(IllegalArgumentError, match="write a name, or a name and its partitions"):
        run(topics=[text])


def test_a_topic_without_partitions_is_refused() -> None:
    with pytest.raises(IllegalArgumentError, match="'a' needs at least 1 partition, not 0"):
        run(topics=["a:0"])
