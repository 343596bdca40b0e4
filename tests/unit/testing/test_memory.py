"""What the in-memory selector adds to the contract: time that jumps, and faults at chosen moments."""

from __future__ import annotations

import errno
import socket

import pytest

from forebay._network._io import CLOSED, CONNECTING, OPEN
from forebay._network.channel import Channel
from forebay._network.transport import Address
from forebay.testing.clock import ManualClock
from forebay.testing.memory import Link, MemorySelector

HERE = Address(socket.AF_INET, ("10.0.0.1", 9092))


class Echo:
    """Answers every piece after ``delay_ms``, and keeps a diary."""

    def __init__(self, delay_ms: float = 0) -> None:
        self.delay_ms = delay_ms
        self.diary: list[str] = []

    def connected(self, link: Link) -> None:
        self.diary.append("connected")

    def received(self, link: Link, data: bytes) -> None:
        self.diary.append(f"received {data!r}")
        link.send(data.upper(), self.delay_ms)

    def closed(self, link: Link) -> None:
        self.diary.append("closed")


class Scene:
    def __init__(self, peer: Echo | None = None, connect_ms: float = 0) -> None:
        self.clock = ManualClock(now=1000)
        self.selector = MemorySelector(self.clock, connect_ms=connect_ms)
        self.selector.listen(HERE, peer)

    def open(self, address: Address = HERE) -> Channel:
        return self.selector.open(address, context=None, now=self.clock.now(), send_buffer=-1, receive_buffer=-1)

    def turn(self, timeout_ms: float) -> list[Channel]:
        return self.selector.turn(timeout_ms, self.clock.now())

    def pair(self) -> tuple[Channel, Link]:
        channel = self.open()
        assert self.turn(10_000) == [channel] and channel.state == OPEN
        return channel, self.selector.links[-1]


def test_time_passes_as_far_as_the_next_thing_that_happens() -> None:
    scene = Scene(Echo(delay_ms=70), connect_ms=30)
    channel = scene.open()
    assert scene.turn(20) == [] and scene.clock.now() == 1020
    assert scene.turn(5000) == [channel] and scene.clock.now() == 1030
    channel.write([b"ab"], None, False)
    scene.turn(0)
    assert scene.turn(5000) == [channel] and scene.clock.now() == 1100
    assert channel.take(2) == b"AB"
    assert scene.turn(250) == [] and scene.clock.now() == 1350


def test_an_answer_without_delay_comes_in_the_same_turn() -> None:
    scene = Scene(peer := Echo())
    channel, _link = scene.pair()
    channel.write([b"a"], None, False)
    for _ in range(2):
        if not channel.received_size:
            scene.turn(0)
    assert (channel.take(1), scene.clock.now()) == (b"A", 1000)
    scene.selector.close(channel)
    assert peer.diary == ["connected", "received b'a'", "closed"]


def test_an_endless_wait_for_nothing_returns() -> None:
    scene = Scene()
    scene.pair()
    assert scene.turn(float("inf")) == [] and scene.clock.now() == 1000


def test_later_sends_never_overtake_earlier_ones() -> None:
    scene = Scene()
    channel, link = scene.pair()
    link.send(b"slow ", delay_ms=50)
    link.send(b"quick", delay_ms=1)
    link.close(delay_ms=2)
    while channel.state == OPEN:
        assert scene.turn(1000) == [channel]
    assert (channel.take(10), scene.clock.now()) == (b"slow quick", 1050)


def test_split_gives_so_many_bytes_a_turn() -> None:
    scene = Scene()
    channel, link = scene.pair()
    link.split = 2
    link.send(b"12345")
    sizes = []
    for _ in range(3):
        assert scene.turn(10) == [channel]
        sizes.append(channel.received_size)
    assert (sizes, scene.clock.now()) == ([2, 4, 5], 1000)


def test_a_stalled_link_takes_nothing_until_it_goes_on() -> None:
    scene = Scene()
    channel, link = scene.pair()
    told: list[bool] = []
    link.stalled = True
    channel.write([b"request"], told.append)
    assert scene.turn(100) == [] and scene.clock.now() == 1100
    assert (channel.pending, told, link.take()) == (7, [], b"")
    link.stalled = False
    assert scene.turn(100) == [channel] and told == [True]
    assert link.take() == b"request"


def test_a_window_bounds_what_is_under_way() -> None:
    scene = Scene()
    channel, link = scene.pair()
    link.window = 3
    channel.write([b"ab", b"cdefg"], None)
    got = []
    while channel.pending:
        scene.turn(10)
        got.append(link.take())
    assert got == [b"abc", b"def", b"g"]


def test_a_reset_loses_what_has_not_arrived() -> None:
    scene = Scene()
    channel, link = scene.pair()
    link.send(b"lost", delay_ms=20)
    link.reset(delay_ms=10)
    assert scene.turn(1000) == [channel] and scene.clock.now() == 1010
    assert (channel.state, channel.received_size, link.open) == (CLOSED, 0, False)
    assert "ECONNRESET" in str(channel.error)
    assert scene.turn(1000) == []


def test_faults_may_be_set_for_a_moment_to_come() -> None:
    scene = Scene()
    channel, _link = scene.pair()
    scene.selector.call_at(1500, lambda: scene.selector.refuse(HERE))
    scene.selector.call_at(1500, scene.selector.wakeup)
    assert scene.turn(10_000) == [] and scene.clock.now() == 1500
    second = scene.open()
    assert scene.turn(0) == [second] and second.state == CLOSED
    scene.selector.swallow(HERE)
    third = scene.open()
    assert scene.turn(60_000) == [] and third.state == CONNECTING
    assert channel.state == OPEN and scene.selector.opened == [HERE] * 3


def test_a_connection_given_up_early_is_never_accepted() -> None:
    scene = Scene(peer := Echo(), connect_ms=100)
    channel = scene.open()
    scene.turn(50)
    scene.selector.close(channel)
    assert scene.turn(1000) == [] and scene.selector.links == [] and peer.diary == []


def test_a_wakeup_stops_the_clock() -> None:
    scene = Scene()
    scene.selector.wakeup()
    assert scene.turn(1000) == [] and scene.clock.now() == 1000


@pytest.mark.parametrize("closed_by", ["close_all", "fork"])
def test_ends(closed_by: str) -> None:
    scene = Scene(peer := Echo())
    channel, _link = scene.pair()
    told: list[bool] = []
    channel.write([b"x"], told.append)
    if closed_by == "close_all":
        scene.selector.close_all()
        assert (channel.state, told, peer.diary) == (CLOSED, [False], ["connected", "closed"])
    else:
        scene.selector.close_after_fork()
        assert (told, peer.diary) == ([], ["connected"])
    assert scene.turn(10) == []


def test_an_address_may_be_slower_than_the_others_and_fail_in_its_own_way() -> None:
    scene = Scene(connect_ms=10)
    far = Address(socket.AF_INET, ("10.0.0.2", 9092))
    scene.selector.listen(far, connect_ms=300)
    near, slow = scene.open(), scene.open(far)
    assert scene.turn(1000) == [near] and scene.clock.now() == 1010
    assert scene.turn(1000) == [slow] and scene.clock.now() == 1300
    scene.selector.connect_ms = 20  # from now on, for those that have no time of their own
    near = scene.open()
    assert scene.turn(1000) == [near] and scene.clock.now() == 1320
    scene.selector.refuse(far, errno.ENETUNREACH)
    gone = scene.open(far)
    assert scene.turn(1000) == [gone] and "ENETUNREACH" in str(gone.error)
