"""Memory of batches with an outcome: to those who wait in one go, and never late for long."""

from __future__ import annotations

import math

import pytest

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.returning import MemoryReturn
from tests.fakes.tickets import CountingTicket
from tests.unit._accumulator.shelf import WAIT, Shelf, quiet

BATCH = 1024


class Full:
    """All memory in drained batches, and so many callers in line for more."""

    def __init__(self, waiting: int, batches: int = 32, value: bytes = bytes(BATCH - 100)) -> None:
        self.shelf = Shelf(batch_size=BATCH, pool=batches * BATCH, leaders=[0] * batches)
        for partition in range(batches):
            self.shelf.append(partition, value=value)
        self.drained: list[ProducerBatch] = self.shelf.drain(0)
        self.tickets = [CountingTicket() for _ in range(waiting)]
        for ticket in self.tickets:
            assert self.shelf.status(0, ticket=ticket) == WAIT
        self.returning: MemoryReturn = self.shelf.accumulator.returning

    def finish(self, count: int) -> None:
        for _ in range(count):
            batch = self.drained.pop()
            assert batch.complete(0, -1, quiet)
            self.shelf.accumulator.deallocate(batch)

    @property
    def woken(self) -> list[int]:
        return [ticket.woken for ticket in self.tickets]


def test_where_nobody_waits_it_is_back_at_once() -> None:
    full = Full(0)
    full.finish(3)
    assert full.shelf.pool.available() == 3 * BATCH
    assert full.returning.serve(1000.0, False) == math.inf


@pytest.mark.parametrize("waiting", [1, 4])
def test_those_who_wait_are_served_in_one_go(waiting: int) -> None:
    """After five milliseconds here."""
    full = Full(waiting)
    full.finish(3)
    assert full.returning.serve(1000.0, False) == 5.0
    assert full.returning.serve(1004.0, False) == 1.0
    assert full.woken == [0] * waiting and full.shelf.pool.available() == 0
    assert full.returning.serve(1005.0, False) == math.inf
    assert full.woken == [1, 1, 1, 0][:waiting]
    assert full.shelf.pool.available() == max(0, 3 - waiting) * BATCH


def test_an_eighth_of_all_is_worth_it() -> None:
    full = Full(8)
    full.finish(3)
    assert full.returning.serve(1000.0, False) == 5.0 and full.woken == [0] * 8
    full.finish(1)
    assert full.returning.serve(1000.0, False) == math.inf and full.woken == [1] * 4 + [0] * 4


def test_what_counts_is_memory_and_not_what_is_in_it() -> None:
    full = Full(1, batches=8, value=b"")
    full.finish(1)
    assert full.returning.serve(1000.0, False) == math.inf and full.woken == [1]


def test_nothing_is_held_while_nothing_can_follow() -> None:
    full = Full(4)
    full.finish(1)
    assert full.returning.serve(1000.0, True) == math.inf
    assert full.woken == [1, 0, 0, 0]


def test_the_time_counts_anew_each_time() -> None:
    full = Full(5)
    full.finish(1)
    assert full.returning.serve(1000.0, False) == 5.0 and full.returning.serve(1006.0, False) == math.inf
    full.finish(1)
    assert full.returning.serve(1007.0, False) == 5.0
    assert full.woken == [1, 0, 0, 0, 0]
