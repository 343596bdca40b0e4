"""What only sockets have: threads, signals, forks, descriptors, many connections.  The contract itself is tried
in tests/conformance."""

from __future__ import annotations

import errno
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from forebay._network._io import CLOSED, CONNECTING, OPEN
from forebay._network.transport import Address, TcpTransport
from forebay.errors import NetworkError
from tests.conformance.worlds import WORLDS, SocketFar, SocketWorld
from tests.support.pace import HANG_S, within

SOCKETS = [name for name in WORLDS if name != "memory"]


@pytest.fixture(params=SOCKETS)
def world(request: pytest.FixtureRequest) -> Iterator[SocketWorld]:
    made = WORLDS[request.param]()
    assert isinstance(made, SocketWorld)
    yield made
    made.end()


def test_no_wakeup_of_another_thread_is_lost(world: SocketWorld) -> None:
    rounds = 2000
    said = 0
    heard = threading.Semaphore(0)

    def talk() -> None:
        nonlocal said
        for _ in range(rounds):
            said += 1
            world.selector.wakeup()
            heard.acquire()

    thread = threading.Thread(target=talk)
    thread.start()
    for number in range(1, rounds + 1):
        while said < number:
            began = time.monotonic()
            world.turn(10_000)
            assert time.monotonic() - began < within(5)
        heard.release()
    thread.join(HANG_S)
    assert not thread.is_alive() and said == rounds


def test_an_endless_wait_ends_by_a_wakeup(world: SocketWorld) -> None:
    timer = threading.Timer(0.02, world.selector.wakeup)
    timer.start()
    assert world.turn(float("inf")) == []
    timer.join(HANG_S)
    assert not timer.is_alive()


def test_a_signal_handler_may_wake(world: SocketWorld) -> None:
    woken: list[int] = []

    def handler(number: int, _frame: object) -> None:
        woken.append(number)
        world.selector.wakeup()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        began = time.monotonic()
        while not woken:
            world.turn(10_000)
        assert time.monotonic() - began < within(5)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_wakeup_after_the_end_is_harmless(world: SocketWorld) -> None:
    world.selector.close_all()
    world.selector.wakeup()
    assert world.turn(10_000) == []


@pytest.mark.parametrize("name", ["imported", "interpreted"])
def test_a_write_that_expects_an_answer_does_not_end_the_turn(name: str) -> None:
    world = WORLDS[name]()
    channel, far = world.pair()
    told: list[bool] = []
    channel.write([b"question"], told.append, False)
    began = world.now()
    assert world.turn(30) == [channel]
    assert told == [True] and world.now() - began >= 29.9
    channel.write([b"statement"], told.append, True)
    began = world.now()
    assert world.turn(10_000) == [channel]
    assert told == [True, True] and world.now() - began < 5000
    assert far.read() == b"questionstatement"
    world.end()


def test_a_write_that_somebody_waits_for_ends_the_turn(world: SocketWorld) -> None:
    channel, far = world.pair()
    assert channel.takes_more()
    channel.write([b"question"], None, False)
    assert not channel.takes_more()
    began = world.now()
    while not channel.takes_more():
        assert world.turn(10_000) == [channel]
    assert world.now() - began < 5000
    assert far.read() == b"question"


LARGE = 6_000_000
"""More than the system takes at once, whatever its limits."""


@pytest.mark.parametrize("name", ["imported", "interpreted"])
def test_a_large_write_takes_one_turn(name: str) -> None:
    """Each part that the system takes would else cost a turn of the sender's thread, and the GIL."""
    world = WORLDS[name]()
    channel, far = world.pair()
    assert isinstance(far, SocketFar)
    sock = far.sock
    told: list[bool] = []
    arrived = bytearray()

    def read_all() -> None:
        sock.settimeout(HANG_S)
        while len(arrived) < LARGE:
            arrived.extend(sock.recv(65536))

    reader = threading.Thread(target=read_all)
    reader.start()
    channel.write([bytes(LARGE)], told.append, True)
    assert world.turn(HANG_S * 1000) == [channel]
    assert told == [True]
    reader.join(HANG_S)
    assert arrived == bytes(LARGE)
    world.end()


@pytest.mark.parametrize("name", ["imported", "interpreted"])
def test_the_first_of_two_writes_that_somebody_waits_for_ends_the_turn(name: str) -> None:
    world = WORLDS[name]()
    channel, _far = world.pair()
    told: list[str] = []
    channel.write([b"statement"], lambda written: told.append(f"first {written}"), True)
    channel.write([bytes(LARGE)], lambda written: told.append(f"second {written}"), True)
    assert world.turn(HANG_S * 1000) == [channel]  # nobody reads, so the second one cannot end
    assert told == ["first True"]
    world.end()
    assert told == ["first True", "second False"]


@pytest.mark.parametrize("end", ["time", "wakeup"])
@pytest.mark.parametrize("name", ["imported", "interpreted"])
def test_a_large_write_that_does_not_end_holds_up_nobody(name: str, end: str) -> None:
    world = WORLDS[name]()
    channel, _far = world.pair()
    told: list[bool] = []
    channel.write([bytes(LARGE)], told.append, True)
    waker = threading.Timer(0.05, world.selector.wakeup)
    if end == "wakeup":
        waker.start()
    assert world.turn(100 if end == "time" else HANG_S * 1000) == []
    assert told == []
    waker.cancel()
    world.end()


def test_a_connection_that_is_never_idle_keeps_its_order(world: SocketWorld) -> None:
    channel, far = world.pair()
    lines = [b"%06d\n" % number * 2000 for number in range(600)]
    ended: list[int] = []
    got = bytearray()
    for number, line in enumerate(lines):
        channel.write([line[:5000], line[5000:]], lambda _written, number=number: ended.append(number))
        world.turn()
        if number % 3 == 0:
            got += far.read()
    got += world.gather(far, sum(map(len, lines)) - len(got))
    assert got == b"".join(lines)
    world.until(lambda: len(ended) == len(lines))
    assert ended == list(range(len(lines)))


def test_many_channels_come_and_go_without_being_mixed_up(world: SocketWorld) -> None:
    choose = random.Random(5)
    pairs: dict[int, tuple[Any, Any]] = {}
    for number in range(120):
        pairs[number] = world.pair(context=number)
        if number % 3 == 2:
            gone, far = pairs.pop(choose.choice(list(pairs)))
            world.selector.close(gone) if number % 2 else far.close()
            world.closes(gone)
    for number, (_channel, far) in pairs.items():
        far.send(b"%d" % number)
    world.until(lambda: all(channel.received_size for channel, _far in pairs.values()))
    for number, (channel, _far) in pairs.items():
        assert (channel.context, channel.take(channel.received_size)) == (number, b"%d" % number)


def test_a_connection_that_cannot_begin_arrives_as_a_closed_channel(
    world: SocketWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_descriptor(address: Address, send_buffer: int, receive_buffer: int) -> TcpTransport:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(TcpTransport, "connect", no_descriptor)
    selector = world.module.SocketSelector()
    channel = selector.open(world.address, context=7, now=1.0, send_buffer=-1, receive_buffer=-1)
    told: list[bool] = []
    channel.write([b"x"], told.append)
    assert channel.state == CONNECTING
    assert selector.turn(10_000.0, 2.0) == [channel]
    assert (channel.state, channel.context, told) == (CLOSED, 7, [False])
    assert isinstance(channel.error, NetworkError) and "EMFILE" in str(channel.error)
    assert selector.turn(0.0, 3.0) == []


def test_an_address_family_the_system_has_not(world: SocketWorld) -> None:
    channel = world.open(Address(250, ("10.0.0.1", 9092)))
    assert world.turn(10_000) == [channel]
    assert channel.state == CLOSED and "10.0.0.1:9092" in str(channel.error)


def test_ipv6(world: SocketWorld) -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        address = Address(socket.AF_INET6, server.getsockname())
        channel = world.selector.open(address, context=None, now=world.now(), send_buffer=-1, receive_buffer=-1)
        world.until(lambda: channel.state == OPEN)
        assert channel.peer == f"[::1]:{server.getsockname()[1]}"
        with server.accept()[0] as far:
            channel.write([b"six"], None)
            world.until(lambda: channel.pending == 0)
            assert far.recv(10) == b"six"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_closes_its_descriptors_and_the_parent_goes_on(world: SocketWorld) -> None:
    channel, far = world.pair()
    told: list[bool] = []
    channel.write([bytes(30_000_000)], told.append)
    world.turn()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            before = len(os.listdir("/proc/self/fd"))
            world.selector.close_after_fork()
            world.selector.wakeup()
            closed = before - len(os.listdir("/proc/self/fd"))
            status = 0 if closed == 3 and told == [] else 1
        finally:
            os._exit(status)  # else the rest of the tests would run here, too
    assert os.waitpid(child, 0)[1] == 0
    got = 0
    while not told:
        got += len(far.read())
        world.turn(25)
    assert told == [True] and channel.state == OPEN
    world.selector.wakeup()
    assert world.turn(10_000) == []
    far.send(b"still here")
    world.until(lambda: channel.received_size == 10)


def test_a_channel_says_what_it_is(world: SocketWorld) -> None:
    channel, far = world.pair()
    far.send(b"123")
    world.until(lambda: channel.received_size == 3)
    assert repr(channel) == f"<Channel {channel.id} to {world.address} OPEN received=3 pending=0>"
