"""Threads that wait for memory are woken together, and never late for long."""

from __future__ import annotations

import math

import pytest

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.pool import BufferPool
from tests.fakes.tickets import CountingTicket
from tests.unit._accumulator.shelf import WAIT, Shelf, quiet

BATCH = 1024


class Full:
    """All memory is in drained batches, and so many callers wait for more."""

    def __init__(self, waiting: int, batches: int = 32, value: bytes = bytes(BATCH - 100)) -> None:
        self.shelf = Shelf(batch_size=BATCH, pool=batches * BATCH, leaders=[0] * batches)
        for partition in range(batches):
            self.shelf.append(partition, value=value)
        self.drained: list[ProducerBatch] = self.shelf.drain(0)
        self.tickets = [CountingTicket() for _ in range(waiting)]
        for ticket in self.tickets:
            assert self.shelf.status(0, ticket=ticket) == WAIT
        self.pool: BufferPool = self.shelf.pool

    def finish(self, count: int) -> None:
        for _ in range(count):
            batch = self.drained.pop()
            assert batch.complete(0, -1, quiet)
            self.shelf.accumulator.deallocate(batch)

    def serve(self, idle: bool = False) -> float:
        return self.pool.serve_deferred(self.shelf.now, idle)

    @property
    def woken(self) -> list[int]:
        return [ticket.woken for ticket in self.tickets]


def test_without_waiters_nothing_is_deferred() -> None:
    full = Full(0)
    full.finish(3)
    assert full.shelf.pool.available() == 3 * BATCH
    assert full.serve() == math.inf


@pytest.mark.parametrize("waiting", [1, 4])
def test_waiters_are_woken_in_one_go(waiting: int) -> None:
    """After five milliseconds here."""
    full = Full(waiting)
    full.finish(3)
    assert full.serve() == 5.0
    full.shelf.clock.advance(4)
    assert full.serve() == 1.0
    assert full.woken == [0] * waiting and full.shelf.status(0) == WAIT, "no newcomer gets the memory"
    full.shelf.clock.advance(1)
    assert full.serve() == math.inf
    assert full.woken == [1, 1, 1, 0][:waiting]
    assert full.shelf.pool.available() == max(0, 3 - waiting) * BATCH


def test_an_eighth_of_all_is_worth_it_in_the_middle_of_an_answer() -> None:
    full = Full(8)
    full.finish(3)
    assert full.serve() == 5.0 and full.woken == [0] * 8
    full.finish(1)
    assert full.woken == [1] * 4 + [0] * 4 and full.serve() == math.inf


def test_slow_callbacks_keep_no_waiter_asleep_for_longer() -> None:
    """Each of them a millisecond, in one answer."""
    full = Full(1, batches=64)
    for held in (0, 0, 0, 0, 0, 1):
        full.finish(1)
        assert full.woken == [held]
        full.shelf.clock.advance(1)
    full.finish(1)
    assert full.shelf.pool.available() == 6 * BATCH and full.serve() == math.inf


def test_what_counts_is_memory_and_not_what_is_in_it() -> None:
    full = Full(1, batches=8, value=bytes(BATCH // 2))  # each has a whole chunk
    full.finish(1)
    assert full.woken == [1] and full.serve() == math.inf


def test_nothing_is_deferred_while_nothing_can_follow() -> None:
    full = Full(4)
    full.finish(1)
    assert full.serve(idle=True) == math.inf
    assert full.woken == [1, 0, 0, 0]


def test_the_time_counts_anew_each_time() -> None:
    full = Full(5)
    full.finish(1)
    full.shelf.clock.advance(6)
    assert full.serve() == math.inf
    full.finish(1)
    assert full.serve() == 5.0
    assert full.woken == [1, 0, 0, 0, 0]


def test_a_caller_that_cannot_wait_has_them_served_at_once() -> None:
    full = Full(1)
    full.finish(2)
    assert full.shelf.status(0) == WAIT
    assert full.pool.serve_now() and not full.pool.serve_now()
    assert full.woken == [1] and full.shelf.pool.available() == BATCH
    assert full.serve() == math.inf


def test_nothing_is_deferred_for_a_waiter_that_lacks_only_its_share() -> None:
    """There is memory for all others, and they must not wait for that."""
    shelf = Shelf(batch_size=BATCH, pool=16 * BATCH, leaders=[0, 0, 1, 1], node_share=2 * BATCH)
    for partition in range(4):
        shelf.append(partition, value=bytes(BATCH - 100))
    ticket = CountingTicket()
    assert shelf.status(0, bytes(BATCH - 100), ticket=ticket) == WAIT and shelf.pool.available() == 12 * BATCH
    batch, _ = shelf.drain(1)
    assert batch.complete(0, -1, quiet)
    shelf.accumulator.deallocate(batch)
    assert shelf.pool.available() == 13 * BATCH and ticket.woken == 0
