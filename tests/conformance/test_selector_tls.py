"""What TLS adds to the selector's contract: records a read, both kinds of end, tickets, when a write is over."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import cast

import pytest

from forebay._network import selector as imported
from forebay._network._io import CLOSED, OPEN
from forebay.errors import DisconnectError
from tests.conformance.worlds import TlsFar, TlsWorld, interpreted

MODULES = {"imported": imported, "interpreted": interpreted}


@pytest.fixture(params=MODULES)
def world(request: pytest.FixtureRequest) -> Iterator[TlsWorld]:
    made = TlsWorld(MODULES[request.param])
    yield made
    made.end()


def raw(far: TlsFar, data: bytes) -> None:
    """Sends bytes past the far end's TLS."""
    super(TlsFar, far).send(data)


def sealed(far: TlsFar, parts: list[bytes]) -> bytes:
    """One record of TLS for each part."""
    for part in parts:
        far.tls.write(part)
    return far.outgoing.read()


def ending(far: TlsFar) -> bytes:
    """The far end's close_notify."""
    with pytest.raises(ssl.SSLWantReadError):
        far.tls.unwrap()
    return far.outgoing.read()


@pytest.mark.parametrize("count", [1, 2, 3, 8, 17, 64, 65])
@pytest.mark.parametrize("size", [1, 100, 16384])
def test_many_records_arrive_at_once(world: TlsWorld, count: int, size: int) -> None:
    channel, far = world.pair()
    parts = [bytes([number]) * size for number in range(count)]
    raw(cast(TlsFar, far), sealed(cast(TlsFar, far), parts))
    world.receives(channel, count * size)
    assert channel.take(count * size) == b"".join(parts)
    assert world.turn() == [] and channel.state == OPEN


def test_a_record_that_comes_byte_by_byte_is_nothing_until_it_is_whole(world: TlsWorld) -> None:
    channel, far = world.pair()
    data = sealed(cast(TlsFar, far), [b"whole"])
    for at in range(len(data) - 1):
        raw(cast(TlsFar, far), data[at : at + 1])
        assert world.turn(20) == [], "a part of a record is no news"
    raw(cast(TlsFar, far), data[-1:])
    world.receives(channel, 5)
    assert channel.take(5) == b"whole"


@pytest.mark.parametrize("data", [b"", b"last words"])
@pytest.mark.parametrize("pieces", [False, True])
def test_a_close_notify_ends_the_stream_behind_its_data(world: TlsWorld, data: bytes, pieces: bool) -> None:
    channel, far = world.pair()
    last = (sealed(cast(TlsFar, far), [data]) if data else b"") + ending(cast(TlsFar, far))
    for at in range(0, len(last), 1 if pieces else len(last)):
        raw(cast(TlsFar, far), last[at : at + (1 if pieces else len(last))])
        world.turn(5)
    world.closes(channel)
    assert isinstance(channel.error, DisconnectError)
    assert bytes(channel.received()) == data


def test_what_follows_a_close_notify_is_not_read(world: TlsWorld) -> None:
    channel, far = world.pair()
    raw(cast(TlsFar, far), ending(cast(TlsFar, far)) + b"\x17\x03\x03\x00\x05hello")
    world.closes(channel)
    assert bytes(channel.received()) == b""


def test_a_stream_that_is_cut_off_keeps_its_data(world: TlsWorld) -> None:
    """Half-closed without a close_notify: whole frames are enough for Kafka, so what came stays readable."""
    channel, far = world.pair()
    raw(cast(TlsFar, far), sealed(cast(TlsFar, far), [b"data"]) + b"\x17\x03\x03\x00\x50half a record")
    world.receives(channel, 4)
    far.close()
    world.closes(channel)
    assert isinstance(channel.error, DisconnectError)
    assert bytes(channel.received()) == b"data"


@pytest.mark.parametrize("module", MODULES)
def test_tickets_are_no_news(module: str) -> None:
    world = TlsWorld(MODULES[module], tickets=4)
    try:
        channel, far = world.pair()
        for _ in range(5):
            assert world.turn(5) == []
        assert channel.received_size == 0
        far.send(b"answer")
        world.receives(channel, 6)
        channel.write([b"question"], None)
        assert world.gather(far, 8) == b"question"
    finally:
        world.end()


def test_a_write_is_over_only_when_the_system_has_its_last_encrypted_byte(world: TlsWorld) -> None:
    channel, far = world.pair()
    told: list[bool] = []
    left: list[int] = []

    def written(done: bool) -> None:
        told.append(done)
        left.append(channel.pending)

    size = 20_000_000
    channel.write([bytes(size)], written)
    for _ in range(20):
        world.turn(2)
        assert told == [] and channel.pending > 0, "the far side reads nothing, and the system takes less than that"
    channel.write([b"next"], None)
    got = world.gather(far, size + 4)
    assert len(got) == size + 4 and got.endswith(b"next")
    world.until(lambda: told)
    assert told == [True]
    assert left[0] <= 4 + 22 + 9, "nothing but the next write was left"


def test_a_write_that_is_cut_off_amid_its_encrypted_bytes_is_not_written(world: TlsWorld) -> None:
    channel, far = world.pair()
    told: list[bool] = []
    channel.write([bytes(20_000_000)], told.append)
    world.turn(2)
    far.reset()
    world.closes(channel)
    assert told == [False] and channel.state == CLOSED
