"""Connections of a simulated producer: turns that do what is due, and never wait."""

from __future__ import annotations

import socket

import pytest

from forebay._network._io import CLOSED, CONNECTING, OPEN
from forebay._network.channel import Channel
from forebay._network.transport import Address
from forebay._runtime.manual_clock import ManualClock
from forebay.tune._world.selector import EventSelector, Link


class Far:
    """A service that keeps what it gets."""

    def __init__(self) -> None:
        self.links: list[Link] = []
        self.data: list[bytes] = []
        self.ended = 0

    def connect(self, link: Link) -> None:
        self.links.append(link)

    def received(self, link: Link, data: bytes) -> None:
        self.data.append(data)

    def closed(self, link: Link) -> None:
        self.ended += 1


class Scene:
    def __init__(self) -> None:
        self.far = Far()
        self.clock = ManualClock()
        self.selector = EventSelector(self.clock, {9001: self.far})
        self.woken: list[float] = []
        self.selector.on_news = lambda: self.woken.append(self.clock.now())
        address = Address(int(socket.AF_INET), ("127.0.0.1", 9001))
        self.channel = self.selector.open(address, context=self, now=0.0, send_buffer=-1, receive_buffer=-1)

    @property
    def link(self) -> Link:
        return self.far.links[0]

    def turn(self, timeout_ms: float = 5.0) -> list[Channel]:
        return self.selector.turn(timeout_ms, self.clock.now())

    def connected(self) -> Scene:
        self.link.established()
        self.turn()
        return self


def test_a_connection_that_stands_is_told_once_and_wakes() -> None:
    scene = Scene()
    assert (scene.turn(), scene.channel.state) == ([], CONNECTING)
    scene.link.established()
    assert len(scene.woken) == 1
    assert scene.selector.has_news()
    assert (scene.turn(), scene.channel.state, scene.selector.again) == ([scene.channel], OPEN, True)
    assert (scene.turn(), scene.selector.again) == ([], False)


def test_a_turn_says_how_long_it_would_have_waited_and_no_time_passes() -> None:
    scene = Scene().connected()
    before = scene.clock.now()
    scene.turn(37.5)
    assert (scene.selector.timeout, scene.clock.now()) == (37.5, before)


def test_what_is_written_goes_out_in_the_next_turn_and_is_released() -> None:
    scene = Scene().connected()
    ends: list[bool] = []
    scene.channel.write([b"abc", b"de"], ends.append, False)
    scene.channel.write([b"f"], ends.append, False)
    assert scene.far.data == []
    assert scene.turn() == []
    assert (scene.far.data, ends) == ([b"abcdef"], [True, True])


def test_a_prompt_write_ends_the_turn() -> None:
    scene = Scene().connected()
    scene.channel.write([b"abc"], None, True)
    assert (scene.turn(), scene.selector.again) == ([scene.channel], True)
    assert scene.turn() == []


def test_requests_are_told_before_the_far_side_has_them() -> None:
    scene = Scene().connected()
    order: list[int] = []
    scene.selector.on_requests = lambda: order.append(len(scene.far.data))
    scene.channel.write([b"abc"], None, False)
    scene.turn()
    assert (order, scene.far.data) == ([0], [b"abc"])


@pytest.mark.parametrize("size", [3, 8192, 100_000])
def test_an_answer_of_any_size(size: int) -> None:
    scene = Scene().connected()
    scene.link.answer(bytes(range(3)) * (size // 3 + 1))
    assert scene.turn() == [scene.channel]
    assert bytes(scene.channel.received())[:size] == (bytes(range(3)) * (size // 3 + 1))[:size]


def test_a_wake_up_ends_the_next_wait_unless_it_is_forgotten() -> None:
    scene = Scene().connected()
    scene.woken.clear()
    scene.selector.wakeup()
    scene.turn()
    assert (scene.selector.again, len(scene.woken)) == (True, 1)
    scene.selector.wakeup()
    scene.selector.forget_wakeup()
    scene.turn()
    assert not scene.selector.again


def test_a_refusal_and_a_reset() -> None:
    refused = Scene()
    refused.link.refuse()
    assert (refused.turn(), refused.channel.state) == ([refused.channel], CLOSED)
    assert "ECONNREFUSED" in str(refused.channel.error)
    broken = Scene().connected()
    broken.link.reset()
    assert (broken.turn(), broken.channel.state) == ([broken.channel], CLOSED)
    assert "closed the connection" in str(broken.channel.error)
    broken.link.answer(b"late")
    assert broken.turn() == []


def test_the_service_hears_of_an_end_that_is_the_producers() -> None:
    scene = Scene().connected()
    scene.selector.close(scene.channel)
    scene.selector.close(scene.channel)
    assert (scene.far.ended, scene.link.open) == (1, False)
    other = Scene().connected()
    other.link.reset()
    other.selector.close_all()
    assert other.far.ended == 0
