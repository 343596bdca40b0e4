"""The side of a channel that selectors use: filling, emptying, ending; without any socket."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from forebay._network import channel as imported
from forebay._network._io import CLOSED, CONNECTING, OPEN
from forebay.errors import DisconnectError
from tests.conformance.worlds import interpreted

FORMS = {"imported": imported.Channel, "interpreted": sys.modules[interpreted.Channel.__module__].Channel}


@pytest.fixture(params=FORMS)
def channel(request: pytest.FixtureRequest) -> Any:
    return FORMS[request.param](3, "node", "10.0.0.1:9092", None, 5.0)


def fill(channel: Any, data: bytes, now: float = 7.0) -> None:
    rest = memoryview(data)
    while rest:
        room = channel.room()
        size = min(len(room), len(rest))
        room[:size] = rest[:size]
        channel.filled(size, now)
        rest = rest[size:]


def test_a_new_channel(channel: Any) -> None:
    assert (channel.id, channel.context, channel.peer, channel.state) == (3, "node", "10.0.0.1:9092", CONNECTING)
    assert (channel.error, channel.pending, channel.received_size, channel.last_active) == (None, 0, 0, 5.0)
    channel.mark_open(6.0)
    assert (channel.state, channel.last_active) == (OPEN, 6.0)


def test_room_is_made_by_moving_before_it_is_made_by_growing(channel: Any) -> None:
    channel.mark_open(6.0)
    first = len(channel.room())
    fill(channel, b"a" * first)
    channel.consume(first - 10)
    assert len(channel.room()) == first - 10
    assert bytes(channel.received()) == b"a" * 10
    fill(channel, b"b" * (first - 10))
    assert len(channel.room()) == first
    assert bytes(channel.received()) == b"a" * 10 + b"b" * (first - 10)


def test_a_view_survives_growth_and_the_channel(channel: Any) -> None:
    channel.mark_open(6.0)
    fill(channel, b"kept")
    view = channel.received()
    fill(channel, bytes(1_000_000))
    channel.shut(None)
    channel.consume(channel.received_size)
    assert bytes(view) == b"kept"


@pytest.mark.parametrize("step", [1, 2, 3, 5, 100])
def test_outgoing_is_what_is_left_however_it_is_sent(channel: Any, step: int) -> None:
    told: list[int] = []
    channel.write([b"abc", b"", bytearray(b"defg")], lambda written: told.append(1))
    channel.write([memoryview(b"hi")], lambda written: told.append(2))
    assert [bytes(view) for view in channel.outgoing(2)] == [b"abc", b"defg"]
    sent = b""
    ended = []
    while channel.pending:
        piece = b"".join(channel.outgoing(10))[:step]
        sent += piece
        ended.append(channel.sent(len(piece), 9.0))
    assert (sent, told, channel.outgoing(10), channel.last_active) == (b"abcdefghi", [1, 2], [], 9.0)
    assert ended[-1] and ended.count(True) == len({-(-mark // step) for mark in (7, 9)})


def test_the_first_end_counts(channel: Any) -> None:
    told: list[bool] = []
    error = DisconnectError("gone")
    channel.write([b"x"], told.append)
    channel.write([], told.append)
    channel.shut(error)
    channel.shut(None)
    assert (channel.state, channel.error, channel.pending, told) == (CLOSED, error, 0, [False, False])


def test_a_dropped_channel_lets_its_buffers_go() -> None:
    for make in FORMS.values():
        buffer = bytearray(b"held")
        made = make(1, None, "peer", None, 0.0)
        made.write([buffer], None)
        with pytest.raises(BufferError):
            buffer.append(1)
        del made
        buffer.append(1)
        assert buffer == b"held\x01"
