"""Bytes move while the sender's thread waits for the GIL; the thread that moves them ends with its selector."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import forebay
from forebay._clock import monotonic_ms
from forebay._network._io import OPEN
from forebay._network.selector import SocketSelector
from forebay._network.transport import Address, Connector, PlainTransport

pytestmark = pytest.mark.skipif(
    forebay.implementation != "compiled", reason="interpreted code gives the GIL up in each call, and needs no mover"
)

SETTLE_S = 0.2
"""Until the other thread is in poll(2), on a busy machine too."""
BUSY_S = 1.0
LARGE = 8_000_000

# Sends twice, then reads until it has so many bytes and says when (time.monotonic is the system's).
PEER = """
import contextlib, socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
peer, _ = server.accept()
peer.recv(2)
for word, pause in ((b"first", 0.5), (b"second", 0.2)):
    time.sleep(pause)
    peer.sendall(word)
left = int(sys.argv[1])
while left > 0:
    block = peer.recv(1 << 20)
    assert block, "the other end closed too early"
    left -= len(block)
print(time.monotonic(), flush=True)
with contextlib.suppress(OSError):
    peer.recv(1)
"""


class Peer:
    """Another process at the end of a connection, which needs nothing of this one's GIL."""

    def __init__(self, wanted: int) -> None:
        command = [sys.executable, "-c", PEER, str(wanted)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.said = self.process.stdout
        self.address = Address(socket.AF_INET, ("127.0.0.1", int(self.said.readline())))

    def end(self) -> None:
        assert self.process.wait(10) == 0
        self.said.close()


@pytest.fixture
def switches() -> Iterator[None]:
    """Whoever has the GIL keeps it until it lets it go."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    yield
    sys.setswitchinterval(before)


def connected(peer: Peer, beside: bool, connector: Connector = PlainTransport.connect) -> tuple[SocketSelector, Any]:
    selector = SocketSelector(connector)
    if beside:
        begin_beside(selector)
    channel = selector.open(peer.address, context=None, now=0, send_buffer=65536, receive_buffer=-1)
    while channel.state != OPEN:
        selector.turn(100, 0)
    return selector, channel


def begin_beside(selector: SocketSelector) -> None:
    """A thread computes: the last waits for the GIL were long ones."""
    now = monotonic_ms()
    for end in (now - 6, now):
        selector.claim.begin(end - 5)
        selector.claim.end(end)
    assert selector.claim.beside


def compute() -> float:
    """Keeps the GIL for a while; when it ended."""
    time.sleep(SETTLE_S)
    end = time.monotonic() + BUSY_S
    while time.monotonic() < end:
        pass
    return end


@pytest.mark.parametrize(("beside", "read"), [(False, 5), (True, 11)])
def test_answers_are_read_while_another_thread_keeps_the_gil(switches: None, beside: bool, read: int) -> None:
    peer = Peer(0)
    selector, channel = connected(peer, beside)
    channel.write([b"go"], None, False)
    selector.turn(0, 0)
    sizes: list[int] = []

    def turns() -> None:
        while not sizes:
            if selector.turn(5000, 0):
                sizes.append(channel.received_size)

    thread = threading.Thread(target=turns)
    thread.start()
    compute()
    thread.join()
    # Without it the second word waits for the next turn.
    assert sizes == [read]
    selector.close_all()
    peer.end()


@pytest.mark.parametrize("beside", [False, True])
def test_what_is_queued_is_written_while_another_thread_keeps_the_gil(switches: None, beside: bool) -> None:
    peer = Peer(LARGE)
    selector, channel = connected(peer, beside)
    channel.write([bytes(LARGE + 2)], None, False)
    ended = threading.Event()

    def turns() -> None:
        while channel.pending and not ended.is_set():
            selector.turn(5000, 0)

    thread = threading.Thread(target=turns)
    thread.start()
    end = compute()
    thread.join()
    assert (float(peer.said.readline()) < end) is beside
    selector.close_all()
    peer.end()


def test_the_sender_keeps_the_gil_until_the_mover_gives_the_turn_back(switches: None) -> None:
    """Without it, the thread that computes would have it again; the mover ends without anybody's help."""
    transports: list[Any] = []

    def connect(*where: Any) -> Any:
        transports.append(PlainTransport.connect(*where))
        return transports[0]

    peer = Peer(0)
    selector, channel = connected(peer, True, connect)
    channel.write([b"go"], None, False)
    selector.turn(0, 0)
    os.set_blocking(transports[0].fileno(), True)  # the mover's recv(2) goes on until the peer's first word
    begin_beside(selector)
    turns: list[int] = []

    def turn() -> None:
        turns.append(len(selector.turn(2000 * SETTLE_S, 0)))

    thread = threading.Thread(target=turn)
    thread.start()
    time.sleep(SETTLE_S)
    while not selector.claim.waiting:
        pass
    end = time.monotonic() + 0.03
    while time.monotonic() < end:
        pass
    while selector.claim.waiting:
        time.sleep(0.001)
    # It has the GIL, and this thread has it next when it has let it go.
    assert len(turns) == 1
    thread.join()
    selector.close_all()
    peer.end()


def threads_of_system() -> int:
    return len(os.listdir("/proc/self/task"))


def comes_to(count: int) -> bool:
    """The system forgets a thread a moment after it was joined."""
    end = time.monotonic() + 20
    while threads_of_system() != count and time.monotonic() < end:
        time.sleep(0.001)
    return threads_of_system() == count


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted in /proc")
@pytest.mark.parametrize("closed", [True, False])
def test_the_thread_ends_with_its_selector(closed: bool) -> None:
    before = threads_of_system()
    for _ in range(20):
        selector = SocketSelector()
        begin_beside(selector)
        selector.turn(0, 0)
        assert threads_of_system() == before + 1
        if closed:
            selector.close_all()
            assert comes_to(before)
        del selector
        assert comes_to(before)


def test_without_a_thread_that_computes_there_is_none() -> None:
    before = threads_of_system() if sys.platform.startswith("linux") else threading.active_count()
    selector = SocketSelector()
    selector.turn(0, 0)
    assert (threads_of_system() if sys.platform.startswith("linux") else threading.active_count()) == before


def test_a_forked_child_knows_that_it_has_none() -> None:
    selector = SocketSelector()
    begin_beside(selector)
    selector.turn(0, 0)
    child = os.fork()
    if child == 0:
        selector.close_after_fork()
        del selector
        os._exit(7)
    end = time.monotonic() + 20
    while (found := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
        time.sleep(0.01)
    assert os.waitstatus_to_exitcode(found[1]) == 7
    selector.close_all()
