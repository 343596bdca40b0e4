"""close(timeout) beside a callback that does not return: who waits goes on, and hears what the broker has said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forebay._delivery.split import open_records
from forebay.errors import KafkaTimeoutError
from tests.error_matrix import CODES
from tests.fakes.answers import hold, reply
from tests.fakes.produce import Answer
from tests.fakes.tickets import CountingTicket
from tests.fakes.waiting import meanwhile
from tests.fakes.world import PumpedThread, World

WRITTEN = {0, 46}
"""No error, and DUPLICATE_SEQUENCE_NUMBER: an earlier attempt wrote it."""


class Stuck:
    """A callback; amid its first call the producer is left, as by a thread that closes and gives up waiting."""

    def __init__(self, world: World, look: Callable[[], Any] = bool) -> None:
        self.world = world
        self.look = look
        self.left: tuple[int, int] | None = None
        self.seen: Any = None

    def __call__(self, report: Any) -> None:
        if self.left is None:
            self.left = self.world.parts.thread.leave()
            self.seen = self.look()


def split_world(records: int = 8, limit: int = 200) -> tuple[World, list[CountingTicket], Stuck]:
    """A batch that a flush waits for and that is split; the callback of its first record is stuck."""
    world = World(batch_size=4096, linger_ms=10, max_in_flight_requests_per_connection=1)
    world.cluster.max_batch_size = limit
    tickets = [CountingTicket()]
    stuck = Stuck(world, lambda: [ticket.woken for ticket in tickets])
    for number in range(records):
        world.send(b"%04d" % number + bytes(50), on_delivery=stuck)
    (batch,) = world.accumulator.begin_flush()
    assert not batch.result.subscribe(tickets[0])
    world.kept = batch  # type: ignore[attr-defined]
    return world, tickets, stuck


@pytest.mark.parametrize("limit", [200, 100])
def test_a_flush_of_a_batch_that_was_split_is_released(limit: int) -> None:
    """With the lower limit parts of it are split, too."""
    world, tickets, stuck = split_world(limit=limit)
    world.run(1000)
    assert stuck.seen == [1], "while the callback runs"
    assert [ticket.woken for ticket in tickets] == [1], "and not once more later"
    whole = world.kept.result  # type: ignore[attr-defined]
    assert whole.done and open_records(whole, 8) == 0 and whole.record_count == 8


def test_a_purge_on_another_thread_is_released() -> None:
    world = World(linger_ms=4000)
    stuck = Stuck(world, lambda: request.done)
    world.send(on_delivery=stuck)
    request = world.parts.thread.purge(in_queue=True, in_flight=True)
    world.settle()
    assert stuck.seen is True and world.sender.purges == []


def test_a_purge_that_has_not_begun_is_released() -> None:
    world = World()
    requests: list[Any] = []

    def purge_and_look() -> list[bool]:
        return [request.done for request in requests]

    stuck = Stuck(world, purge_and_look)

    def first(report: Any) -> None:
        requests.append(world.parts.thread.purge(in_queue=True, in_flight=True))
        stuck(report)

    world.send(on_delivery=first)
    world.settle()
    assert stuck.seen == [True]


@pytest.mark.parametrize("code", sorted({*WRITTEN, *CODES[::8]}))
def test_what_an_answer_acknowledges_is_not_failed(code: int) -> None:
    """The thread has come to the first batch of the answer alone."""
    world = World(idempotent=True)
    hold(world)
    stuck = Stuck(world, lambda: second.exception(0))
    world.send(partition=0, on_delivery=stuck)
    second = world.send(partition=1)
    world.settle()
    reply(world, (0, Answer(0, base_offset=5)), (1, Answer(code, base_offset=7 if code == 0 else -1)))
    world.settle()
    assert (stuck.seen is None) == (code in WRITTEN)
    assert stuck.left == ((2, 0) if code in WRITTEN else (1, 1))
    if code in WRITTEN:
        assert second.result(0).offset == (7 if code == 0 else -1)


def test_flush_counts_the_records_that_have_no_outcome() -> None:
    """Of a batch that was split, the records of parts that are done are not among them."""
    world = World(batch_size=4096, linger_ms=10, max_in_flight_requests_per_connection=1)
    world.cluster.max_batch_size = 200
    futures = [world.send(b"%04d" % number + bytes(50)) for number in range(8)]
    (batch,) = world.accumulator.begin_flush()
    world.until(lambda: any(future.done() for future in futures), step=1)
    hold(world)
    world.settle()
    left = sum(not future.done() for future in futures)
    assert 0 < left < 8 and open_records(batch.result, 8) == left


def test_flush_says_so() -> None:
    world = World(batch_size=4096, linger_ms=10, max_in_flight_requests_per_connection=1)
    world.cluster.max_batch_size = 200
    futures = [world.send(b"%04d" % number + bytes(50)) for number in range(8)]
    futures[3].add_done_callback(lambda future: hold(world))
    error = meanwhile(world, lambda: world.producer.flush(0.5), step=5)
    left = sum(not future.done() for future in futures)
    assert 0 < left < 8
    assert isinstance(error, KafkaTimeoutError) and f"flush: {left} record(s) have no outcome" in str(error)


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ((0, 3), "close: 3 record(s) were not acknowledged within 0.1 s and failed"),
        ((2, 0), "close: 2 record(s) were acknowledged, but not all of their callbacks have run: one of them has not"),
        ((2, 3), "failed; 2 record(s) were acknowledged, but not all"),
        ((0, 0), None),
    ],
)
def test_close_names_no_record_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, left: tuple[int, int], said: str | None
) -> None:
    world = World()
    PumpedThread(world).stuck = True
    monkeypatch.setattr(PumpedThread, "leave", lambda self: left)
    error: BaseException | None = None
    try:
        world.producer.close(0.1)
    except KafkaTimeoutError as raised:
        error = raised
    assert (error is None) == (said is None)
    assert said is None or (said in str(error) and " 0 record" not in str(error))
