"""Compression by helpers: everything that is taken is done, by a helper or by the caller, and they end."""

from __future__ import annotations

import os
import threading
import time
from queue import SimpleQueue

import pytest

from forebay._accumulator.helpers import AHEAD, CompressionHelpers, processors_to_spare
from tests.fakes.world import World

WAIT_S = 20


def until_ended() -> None:
    end = time.monotonic() + WAIT_S
    while any(thread.name == "forebay-compression" for thread in threading.enumerate()):
        assert time.monotonic() < end, "a helper still runs"
        time.sleep(0.01)


@pytest.mark.parametrize("most", [1, 3])
def test_all_that_is_taken_is_done_once(most: int) -> None:
    done: list[int] = []
    helpers = CompressionHelpers(done.append, most)
    left = [number for number in range(500) if not helpers.take(number)]
    helpers.end()
    until_ended()
    assert sorted(done + left) == list(range(500))
    assert done


def test_while_helpers_are_busy_the_caller_has_to_do_it() -> None:
    busy = threading.Event()

    def close(_: int) -> None:
        busy.wait(WAIT_S)

    helpers = CompressionHelpers(close, 1)
    taken = [helpers.take(number) for number in range(10)]
    busy.set()
    helpers.end()
    until_ended()
    assert taken[:AHEAD] == [True] * AHEAD
    assert taken[AHEAD + 1 :] == [False] * (10 - AHEAD - 1)


def test_without_a_processor_to_spare_there_are_none() -> None:
    helpers = CompressionHelpers(print, 0)
    assert not helpers.take(1)
    helpers.end()


def test_what_an_interrupt_left_is_done_by_the_helpers() -> None:
    done: list[int] = []
    caller, hold = threading.get_ident(), threading.Event()

    def close(number: int) -> None:
        if threading.get_ident() == caller:
            hold.set()
            raise KeyboardInterrupt
        hold.wait(WAIT_S)
        done.append(number)

    helpers = CompressionHelpers(close, 1)
    taken = sum([helpers.take(number) for number in range(3)])
    with pytest.raises(KeyboardInterrupt):
        helpers.end()
    until_ended()
    # The one that the interrupt met too: a second look at a queue finds nothing, or what was left.
    assert set(done) == set(range(taken)) != set()


def test_a_helper_whose_start_was_interrupted_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        begin(thread)
        raise KeyboardInterrupt

    begin = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    helpers = CompressionHelpers(print, 1)
    with pytest.raises(KeyboardInterrupt):
        helpers.take(1)
    helpers.end()
    until_ended()


def test_where_no_thread_can_be_had_the_caller_has_to_do_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    helpers = CompressionHelpers(print, 2)
    assert [helpers.take(number) for number in range(3)] == [False] * 3
    helpers.end()


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_helped_batches_hold_every_row_in_order(codec: str) -> None:
    world = World(topics={"t": 2}, batch_size=2000, compression_type=codec, buffer_memory=1 << 25, linger_ms=1000)
    world.accumulator.closer.most_helpers = 2
    values = [b"%d:" % row + bytes(row % 90) for row in range(20_000)]
    delivery = world.producer.send_batch("t", values, partition=[row % 2 for row in range(20_000)])
    until_ended()
    world.run(1200)
    assert delivery.acknowledged == 20_000
    assert [world.values("t", number) for number in range(2)] == [values[number::2] for number in range(2)]
    assert world.accumulator.closer.helpers == {}
    assert world.pool.available() == 1 << 25


def test_the_caller_has_a_processor_of_its_own() -> None:
    assert 0 <= processors_to_spare() < (os.cpu_count() or 1)


class Unlucky(SimpleQueue[int]):
    """Ctrl-C comes between the line and who took the first one out."""

    def get_nowait(self) -> int:
        super().get_nowait()
        raise KeyboardInterrupt


def test_what_left_the_line_and_was_not_begun_is_done_by_the_helpers() -> None:
    done: list[int] = []
    hold = threading.Event()

    def close(number: int) -> None:
        hold.wait(WAIT_S)
        done.append(number)

    helpers = CompressionHelpers(close, 1)
    helpers._waiting = Unlucky()
    taken = {number for number in range(10) if helpers.take(number)}
    with pytest.raises(KeyboardInterrupt):
        helpers.end()
    hold.set()
    until_ended()
    assert set(done) == taken


def test_ctrl_c_before_a_helper_is_told_leaves_the_batch_to_the_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(self: CompressionHelpers, queue: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(CompressionHelpers, "take", take)
    world = World(topics={"t": 1}, batch_size=1000, compression_type="lz4")
    world.accumulator.closer.most_helpers = 1
    with pytest.raises(KeyboardInterrupt) as caught:
        world.producer.send_batch("t", [b"%d" % row for row in range(4000)])
    delivery = caught.value.delivery  # type: ignore[attr-defined]
    world.settle()
    assert delivery.acknowledged == delivery.rows > 90
    assert world.values("t") == [b"%d" % row for row in range(delivery.rows)]
