"""Compression by helpers: everything that is taken is done, by a helper or by the caller, and they end."""

from __future__ import annotations

import contextlib
import os
import threading
from queue import SimpleQueue

import pytest

from forebay import KafkaProducer
from forebay._accumulator.closing import BatchCloser
from forebay._accumulator.helpers import AHEAD, CompressionHelpers, processors_to_spare
from forebay.testing import EmbeddedBroker
from tests.fakes.world import World
from tests.support.pace import HANG_S, until

UNIT = 1000
LARGE = UNIT
"""Raw bytes of a batch that is a unit by itself."""


def help_with(closer: BatchCloser, most: int) -> None:
    closer.helpers = CompressionHelpers(closer.compress_queues, most, UNIT)


def until_ended() -> None:
    until(lambda: all(thread.name != "forebay-compression" for thread in threading.enumerate()), "helpers end")


def until_running(helpers: CompressionHelpers, count: int) -> None:
    until(lambda: len(helpers._running) >= count, "a helper comes")


@pytest.mark.parametrize("size", [LARGE, UNIT // 10])
@pytest.mark.parametrize("most", [1, 3])
def test_all_that_is_taken_is_done_once(most: int, size: int) -> None:
    done: list[int] = []
    helpers = CompressionHelpers(done.extend, most, UNIT)
    left: list[int] = []
    for number in range(500):
        if not helpers.accept(number, size):
            left += helpers.unit(number)
    helpers.end()
    until_ended()
    assert sorted(done + left) == list(range(500))
    assert done


def test_while_helpers_are_busy_the_caller_has_to_do_it() -> None:
    busy = threading.Event()

    def close(_: list[int]) -> None:
        busy.wait(HANG_S)

    helpers = CompressionHelpers(close, 1, UNIT)
    taken = [helpers.accept(0, LARGE)]
    until_running(helpers, 1)
    taken += [helpers.accept(number, LARGE) for number in range(1, 10)]
    busy.set()
    helpers.end()
    until_ended()
    assert taken[:AHEAD] == [True] * AHEAD
    assert taken[AHEAD + 1 :] == [False] * (10 - AHEAD - 1)


def test_small_batches_wait_and_are_done_by_the_unit() -> None:
    hold = threading.Event()
    begun = threading.Event()
    done: list[list[int]] = []

    def close(numbers: list[int]) -> None:
        begun.set()
        hold.wait(HANG_S)
        done.append(numbers)

    helpers = CompressionHelpers(close, 1, UNIT)
    assert helpers.accept(0, UNIT // 4)
    assert begun.wait(HANG_S)
    taken = [number for number in range(1, 100) if helpers.accept(number, UNIT // 4)]
    assert len(taken) == AHEAD * 4
    assert helpers.unit(99) == [99, 1, 2, 3]
    hold.set()
    helpers.end()
    until_ended()
    assert done == [[0], [4, 5, 6, 7], [8]]


def test_helpers_outlive_a_call_and_end_once_they_are_told() -> None:
    done = threading.Event()

    def close(_: list[int]) -> None:
        done.set()

    helpers = CompressionHelpers(close, 1, UNIT)
    for _ in range(2):
        assert helpers.accept(1, LARGE)
        assert done.wait(HANG_S)
        done.clear()
    assert [thread.name for thread in threading.enumerate()].count("forebay-compression") == 1
    helpers.end()
    helpers.end()
    until_ended()
    assert not helpers.accept(1, LARGE)
    assert helpers.unit(1) == [1]


def test_a_caller_that_meets_the_end_leaves_it_to_the_helpers() -> None:
    hold = threading.Event()

    def close(_: list[int]) -> None:
        hold.wait(HANG_S)

    helpers = CompressionHelpers(close, 1, UNIT)
    assert helpers.accept(1, 1)
    helpers.end()
    helpers.unit(2)
    hold.set()
    until_ended()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_one_that_was_never_made_is_not_counted_on(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    def start(thread: threading.Thread) -> None:
        raise error

    monkeypatch.setattr(threading.Thread, "start", start)
    helpers = CompressionHelpers(print, 1, UNIT)
    taken = []
    for number in range(3):
        with contextlib.suppress(KeyboardInterrupt):
            taken.append(helpers.accept(number, LARGE))
    assert taken and not any(taken)


def test_one_that_meets_an_error_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []

    def close(numbers: list[int]) -> None:
        if numbers == [0]:
            raise SystemExit("a codec's")
        done.extend(numbers)

    helpers = CompressionHelpers(close, 1, UNIT)
    assert helpers.accept(0, LARGE)
    until_running(helpers, 1)
    assert helpers.accept(1, LARGE)
    helpers.end()
    until_ended()
    assert done == [1]
    assert "met an error" in caplog.text


@pytest.mark.parametrize("act", ["accept", "end"])
def test_what_a_signal_s_handler_does_while_one_is_started(monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    def start(thread: threading.Thread) -> None:
        if act == "accept":
            assert not helpers.accept(2, LARGE)
        else:
            helpers.end()
        begin(thread)

    begin = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    done: list[int] = []
    helpers = CompressionHelpers(done.extend, 1, UNIT)
    assert helpers.accept(1, LARGE) is (act == "accept")
    helpers.end()
    until_ended()
    assert done == ([1] if act == "accept" else [])


def test_without_a_processor_to_spare_there_are_none() -> None:
    helpers = CompressionHelpers(print, 0, UNIT)
    assert not helpers.accept(1, LARGE)
    helpers.end()


def test_a_helper_whose_start_was_interrupted_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        begin(thread)
        raise KeyboardInterrupt

    begin = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    helpers = CompressionHelpers(print, 1, UNIT)
    with pytest.raises(KeyboardInterrupt):
        helpers.accept(1, LARGE)
    helpers.end()
    until_ended()


def test_where_no_thread_can_be_had_the_caller_has_to_do_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    helpers = CompressionHelpers(print, 2, UNIT)
    assert [helpers.accept(number, LARGE) for number in range(3)] == [False] * 3
    helpers.end()


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_helped_batches_hold_every_row_in_order(codec: str) -> None:
    world = World(topics={"t": 2}, batch_size=2000, compression_type=codec, buffer_memory=1 << 25, linger_ms=1000)
    help_with(world.accumulator.closer, 2)
    values = [b"%d:" % row + bytes(row % 90) for row in range(20_000)]
    delivery = world.producer.send_batch("t", values, partition=[row % 2 for row in range(20_000)])
    world.accumulator.closer.end()
    until_ended()
    world.run(1200)
    assert delivery.acknowledged == 20_000
    assert [world.values("t", number) for number in range(2)] == [values[number::2] for number in range(2)]
    assert world.accumulator.closer.helped_threads == set()
    assert world.pool.available() == 1 << 25


def test_the_caller_has_a_processor_of_its_own() -> None:
    assert 0 <= processors_to_spare() < (os.cpu_count() or 1)


class Unlucky(SimpleQueue[int]):
    """Ctrl-C comes after the first one was taken out of the line."""

    def get_nowait(self) -> int:
        super().get_nowait()
        raise KeyboardInterrupt


def test_what_left_the_line_and_was_not_begun_is_done_by_the_helpers() -> None:
    done: list[int] = []
    hold = threading.Event()

    def close(numbers: list[int]) -> None:
        hold.wait(HANG_S)
        done.extend(numbers)

    helpers = CompressionHelpers(close, 1, UNIT)
    line = Unlucky()
    helpers._waiting = line
    taken = {number for number in range(10) if helpers.accept(number, LARGE)}
    helpers._together = 2
    with pytest.raises(KeyboardInterrupt):
        helpers.unit(99)
    helpers._together = 1
    hold.set()
    helpers.end()
    until_ended()
    # One that a helper had meanwhile too: a second look at a queue finds nothing, or what was left.
    assert set(done) == taken != set()


def test_ctrl_c_before_a_helper_is_told_leaves_the_batch_to_the_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    def accept(self: CompressionHelpers, queue: object, size: int) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(CompressionHelpers, "accept", accept)
    world = World(topics={"t": 1}, batch_size=1000, compression_type="lz4")
    help_with(world.accumulator.closer, 1)
    with pytest.raises(KeyboardInterrupt) as caught:
        world.producer.send_batch("t", [b"%d" % row for row in range(4000)])
    delivery = caught.value.delivery  # type: ignore[attr-defined]
    world.settle()
    assert delivery.acknowledged == delivery.rows > 90
    assert world.values("t") == [b"%d" % row for row in range(delivery.rows)]


def test_they_end_with_the_producer() -> None:
    with EmbeddedBroker(topics={"t": 2}) as broker:
        with KafkaProducer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": "lz4"}) as producer:
            help_with(producer._parts.accumulator.closer, 1)
            delivery = producer.send_batch("t", [b"%d" % row * 50 for row in range(5000)])
            producer.flush()
            assert delivery.acknowledged == 5000
            assert [thread.name for thread in threading.enumerate()].count("forebay-compression") == 1
        until_ended()
