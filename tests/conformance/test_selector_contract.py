"""One contract, every selector: what ``Selector`` and ``Channel`` promise, over loopback and in memory."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forebay._network._io import CLOSED, CONNECTING, OPEN
from forebay.errors import DisconnectError, IllegalArgumentError, IllegalStateError, NetworkError
from tests.conformance.worlds import WORLDS, World
from tests.support.examples import examples


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = WORLDS[request.param]()
    yield made
    made.end()


def exported(buffer: bytearray) -> bool:
    """Whether somebody holds the buffer's memory: then it cannot change its size."""
    try:
        buffer.append(0)
        buffer.pop()
    except BufferError:
        return True
    return False


# -- connecting ------------------------------------------------------------------------------------------------


def test_a_channel_opens_and_says_so_once(world: World) -> None:
    channel = world.open(context="node 1")
    assert (channel.state, channel.context, channel.error) == (CONNECTING, "node 1", None)
    news = world.until(lambda: channel.state == OPEN)
    assert news == [channel]
    assert world.turn() == []


def test_channels_have_ids_of_their_own(world: World) -> None:
    channels = [world.open() for _ in range(5)]
    assert len({channel.id for channel in channels}) == 5


def test_a_refused_connection_arrives_as_a_closed_channel(world: World) -> None:
    channel = world.open(world.refused, context="nobody")
    news = world.until(lambda: channel.state == CLOSED)
    assert news == [channel]
    assert isinstance(channel.error, NetworkError)
    assert not isinstance(channel.error, DisconnectError)
    assert str(world.refused) in str(channel.error) and "ECONNREFUSED" in str(channel.error)


def test_a_connection_that_never_answers_stays_connecting(world: World) -> None:
    channel = world.open(world.silent)
    told: list[bool] = []
    channel.write([b"request"], told.append)
    assert [news for _ in range(3) for news in world.turn(5)] == []
    assert (channel.state, told) == (CONNECTING, [])
    world.selector.close(channel)
    assert (channel.state, channel.error, told) == (CLOSED, None, [False])


def test_what_is_written_before_the_connection_stands_is_sent_after(world: World) -> None:
    channel = world.open()
    channel.write([b"early"], None)
    world.until(lambda: channel.state == OPEN)
    far = world.accept()
    got = world.gather(far, len(b"early"))
    assert got == b"early"


# -- writing ---------------------------------------------------------------------------------------------------


def test_a_vector_of_all_kinds_of_buffers_arrives_in_order(world: World) -> None:
    channel, far = world.pair()
    parts: list[Any] = [b"abc", bytearray(b"def"), memoryview(b"..ghi..")[2:5], b"", memoryview(bytearray(b"j"))]
    parts += [b"%d," % number for number in range(1000)]
    channel.write(parts, None)
    expected = b"".join(bytes(part) for part in parts)
    got = world.gather(far, len(expected))
    assert got == expected
    assert channel.pending == 0


def test_the_end_of_a_write_is_told_once_and_lets_the_buffer_go(world: World) -> None:
    channel, _far = world.pair()
    buffer = bytearray(b"held until written")
    told: list[tuple[bool, bool]] = []
    channel.write([buffer], lambda written: told.append((written, exported(buffer))))
    assert (channel.pending >= 18, exported(buffer), told) == (True, world.holds, [])
    news = world.until(lambda: told)
    assert news == [channel]
    world.turn()
    assert told == [(True, False)]


def test_writes_end_in_order(world: World) -> None:
    channel, _far = world.pair()
    told: list[int] = []
    for number in range(20):
        channel.write([b"x" * number], lambda written, number=number: told.append(number))
    world.until(lambda: len(told) == 20)
    assert told == list(range(20))


def test_a_write_without_bytes_ends_in_the_next_turn(world: World) -> None:
    channel, _far = world.pair()
    told: list[bool] = []
    channel.write([], told.append)
    channel.write([b""], told.append)
    assert told == []
    assert world.turn(1000) == [channel]
    assert told == [True, True]


def test_a_clogged_connection_holds_up_no_other(world: World) -> None:
    clogged, far = world.pair()
    free, free_far = world.pair()
    huge = bytes(range(256)) * 60_000
    told: list[bool] = []
    clogged.write([memoryview(huge)[: len(huge) // 2], memoryview(huge)[len(huge) // 2 :]], told.append)
    for _ in range(20):
        world.turn(2)
    assert 0 < clogged.pending < len(huge)
    free.write([b"passes"], None)
    assert world.gather(free_far, 6) == b"passes"
    assert told == []
    got = world.gather(far, len(huge))
    assert got == huge
    world.until(lambda: told)
    assert (told, clogged.pending) == ([True], 0)


def test_closing_ends_open_writes_and_lets_their_buffers_go(world: World) -> None:
    channel, _far = world.pair()
    buffers = [bytearray(4_000_000), bytearray(4_000_000)]
    told: list[tuple[int, bool]] = []
    for number, buffer in enumerate(buffers):
        channel.write([buffer], lambda written, number=number: told.append((number, written)))
    for _ in range(5):
        world.turn()
    assert channel.pending > 0
    world.selector.close(channel)
    world.selector.close(channel)
    assert (told, channel.pending, channel.state) == ([(0, False), (1, False)], 0, CLOSED)
    assert not any(exported(buffer) for buffer in buffers)
    assert world.turn() == []


def test_nothing_can_be_written_to_a_closed_channel(world: World) -> None:
    channel, _far = world.pair()
    world.selector.close(channel)
    buffer = bytearray(b"kept")
    told: list[bool] = []
    with pytest.raises(IllegalStateError, match="CLOSED"):
        channel.write([buffer], told.append)
    assert not exported(buffer) and told == []


@pytest.mark.parametrize("bad", [["text"], [b"good", 5], [b"good", memoryview(b"abcdef")[::2]]])
def test_what_is_not_bytes_is_refused_and_nothing_is_taken(world: World, bad: list[Any]) -> None:
    channel, far = world.pair()
    buffer = bytearray(b"first")
    with pytest.raises((TypeError, BufferError)):
        channel.write([buffer, *bad], None)
    assert not exported(buffer) and channel.pending == 0
    channel.write([b"next"], None)
    got = world.gather(far, 4)
    assert got == b"next"


def test_a_failing_callback_stops_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    channel, _far = world.pair()
    told: list[bool] = []

    def fail(written: bool) -> None:
        raise ValueError(f"written={written}")

    channel.write([b"one"], fail)
    channel.write([b"two"], told.append)
    with caplog.at_level(logging.ERROR, logger="forebay.network"):
        world.until(lambda: told)
    assert told == [True] and "written=True" in caplog.text


def test_a_callback_may_write(world: World) -> None:
    channel, far = world.pair()
    channel.write([b"first "], lambda written: channel.write([b"second"], None))
    got = world.gather(far, 12)
    assert got == b"first second"


def test_a_callback_may_close_its_channel_and_another(world: World) -> None:
    channels = [world.pair()[0] for _ in range(4)]
    told: list[bool] = []

    def close_two(written: bool) -> None:
        world.selector.close(channels[0])
        world.selector.close(channels[2])

    channels[0].write([b"x"], close_two)
    channels[0].write([b""], told.append)
    channels[3].write([b"y"], told.append)
    world.until(lambda: len(told) == 2)
    assert sorted(told) == [False, True]
    assert [channel.state for channel in channels] == [CLOSED, OPEN, CLOSED, OPEN]


# -- receiving -------------------------------------------------------------------------------------------------


def test_bytes_one_at_a_time(world: World) -> None:
    channel, far = world.pair()
    sent = b"\x00\x00\x00\x05hello\xff\xff\xff\xfe"
    for count in range(1, len(sent) + 1):
        far.send(sent[count - 1 : count])
        assert channel in world.receives(channel, count)
    assert (channel.int32_at(0), channel.int32_at(9), bytes(channel.received())) == (5, -2, sent)
    assert channel.take(4) == sent[:4]
    channel.consume(2)
    assert (bytes(channel.received()), channel.received_size) == (b"llo\xff\xff\xff\xfe", 7)


def test_a_large_answer_arrives_whole_and_its_memory_is_given_back(world: World) -> None:
    channel, far = world.pair()
    sent = bytes(range(251)) * 8_000
    for start in range(0, len(sent), 100_000):
        far.send(sent[start : start + 100_000])
        world.receives(channel, min(start + 100_000, len(sent)))
    assert bytes(channel.received()) == sent
    channel.consume(len(sent))
    assert channel.received_size == 0 and len(channel.room()) <= 65536


def test_a_view_stays_what_it_was_while_nothing_is_consumed(world: World) -> None:
    channel, far = world.pair()
    far.send(b"a" * 100)
    world.until(lambda: channel.received_size == 100)
    view = channel.received()
    far.send(b"b" * 50_000)
    world.until(lambda: channel.received_size == 50_100)
    assert bytes(view) == b"a" * 100


@pytest.mark.parametrize("size", [-1, 6])
def test_no_more_can_be_consumed_than_there_is(world: World, size: int) -> None:
    channel, far = world.pair()
    far.send(b"12345")
    world.until(lambda: channel.received_size == 5)
    for wrong in (channel.consume, channel.take):
        with pytest.raises(IllegalArgumentError, match=str(size)):
            wrong(size)
    with pytest.raises(IllegalArgumentError, match="4 bytes at 2"):
        channel.int32_at(2)
    assert bytes(channel.received()) == b"12345"


def test_moving_bytes_is_activity(world: World) -> None:
    channel, far = world.pair()
    began = channel.last_active
    far.send(b"x")
    world.until(lambda: channel.received_size == 1)
    assert began <= channel.last_active <= world.now()
    idle = channel.last_active
    world.turn(5)
    assert channel.last_active == idle


# -- ends ------------------------------------------------------------------------------------------------------


def test_the_last_answer_before_the_end_can_be_read(world: World) -> None:
    channel, far = world.pair()
    far.send(b"goodbye")
    far.close()
    news = world.until(lambda: channel.state == CLOSED)
    assert set(news) == {channel}
    assert isinstance(channel.error, DisconnectError) and "closed the connection" in str(channel.error)
    assert channel.take(7) == b"goodbye"


def test_a_reset_ends_writes_and_leaves_others_alone(world: World) -> None:
    channel, far = world.pair()
    other, other_far = world.pair()
    told: list[bool] = []
    channel.write([bytes(8_000_000)], told.append)
    world.turn()
    far.reset()
    world.until(lambda: channel.state == CLOSED)
    assert told == [False] and channel.pending == 0
    assert isinstance(channel.error, DisconnectError) and channel.peer in str(channel.error)
    other_far.send(b"alive")
    world.until(lambda: other.received_size == 5)
    assert other.state == OPEN


def test_close_all_closes_all(world: World) -> None:
    channels = [world.pair()[0] for _ in range(3)] + [world.open(world.silent)]
    told: list[bool] = []
    channels[3].write([b"never"], told.append)
    world.selector.close_all()
    assert [channel.state for channel in channels] == [CLOSED] * 4
    assert told == [False] and world.turn() == []


# -- waiting ---------------------------------------------------------------------------------------------------


def test_a_turn_with_nothing_to_do_takes_its_timeout(world: World) -> None:
    world.pair()
    began = world.now()
    assert world.turn(20.5) == []
    assert 20.4 <= world.now() - began < 1000
    began = world.now()
    assert world.turn(0) == [] and world.turn(-1) == []
    assert world.now() - began < 20


def test_a_wakeup_ends_the_next_turn_and_many_no_more_than_that(world: World) -> None:
    world.pair()
    for _ in range(100_000):
        world.selector.wakeup()
    began = world.now()
    assert world.turn(10_000) == []
    assert world.now() - began < 1000
    began = world.now()
    assert world.turn(20) == []
    assert world.now() - began >= 19.9


# -- any order of things ---------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(st.integers(0, 70_000), max_size=5)),
        st.tuples(st.just("send"), st.integers(1, 40_000)),
        st.tuples(st.just("read"), st.just(0)),
        st.tuples(st.just("consume"), st.integers(0, 50_000)),
        st.tuples(st.just("turn"), st.just(0)),
    ),
    max_size=30,
)


def pattern(start: int, size: int) -> bytes:
    """Bytes that are different at every position of a stream, in effect."""
    return b"".join(number.to_bytes(4, "big") for number in range(start // 4, (start + size) // 4 + 1))[
        start % 4 : start % 4 + size
    ]


@pytest.mark.parametrize("name", WORLDS)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_both_streams_arrive_as_they_were_sent(name: str, steps: list[tuple[str, Any]]) -> None:
    world = WORLDS[name]()
    try:
        channel, far = world.pair()
        run = Streams(world, channel, far)
        for kind, argument in steps:
            getattr(run, kind)(argument)
        run.finish()
        assert run.arrived == pattern(0, run.written) and run.received == pattern(0, run.sent)
        assert run.told == [True] * run.writes
    finally:
        world.end()


class Streams:
    """Both directions of one connection, and what should have come of them."""

    def __init__(self, world: World, channel: Any, far: Any) -> None:
        self.world, self.channel, self.far = world, channel, far
        self.written = self.sent = self.writes = 0
        self.arrived, self.received = bytearray(), bytearray()
        self.told: list[bool] = []

    def write(self, sizes: list[int]) -> None:
        parts = []
        for size in sizes:
            parts.append(pattern(self.written, size))
            self.written += size
        self.writes += 1
        self.channel.write(parts, self.told.append, self.writes % 2 == 0)

    def send(self, size: int) -> None:
        self.far.send(pattern(self.sent, size))
        self.sent += size

    def read(self, _unused: int) -> None:
        self.arrived += self.far.read()

    def consume(self, size: int) -> None:
        self.received += self.channel.take(min(size, self.channel.received_size))

    def turn(self, _unused: int) -> None:
        self.world.turn(1)

    def finish(self) -> None:
        def all_there() -> bool:
            self.read(0)
            self.consume(1 << 30)
            told = len(self.told) == self.writes
            return told and len(self.arrived) >= self.written and len(self.received) >= self.sent

        self.world.until(all_there)
