"""What flush, close and commit rely on: which batches are listed, and that none gets in once it is sealed."""

from __future__ import annotations

import random
import threading

import pytest

import forebay
from forebay._accumulator.account import BatchAccount
from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.pool import Buffer
from forebay._accumulator.split import split, split_and_reenqueue
from forebay._accumulator.states import OPEN
from forebay._delivery.result import BatchResult
from forebay._records.compression import CompressionType, compressor
from forebay.errors import IllegalStateError, KafkaError, ProducerClosedError
from tests.fakes.tickets import CountingTicket
from tests.unit._accumulator.shelf import APPENDED, FULL, NEW, RECORD, WAIT, Shelf, read


class Guard:
    """Says which state it was asked in."""

    def __init__(self, state: str = "READY") -> None:
        self.state = state

    def refusal(self) -> KafkaError:
        return IllegalStateError(f"no records in state {self.state}")


def sealed_shelf(**options: object) -> Shelf:
    shelf = Shelf(**options)  # type: ignore[arg-type]
    shelf.accumulator.appender.guard = Guard()
    shelf.append()
    shelf.accumulator.seal()
    return shelf


def test_a_sealed_accumulator_takes_nothing() -> None:
    shelf = sealed_shelf()
    for partition in (0, 1, -1):
        with pytest.raises(IllegalStateError, match="no records in state READY"):
            shelf.status(partition)
    assert [batch.record_count for batch in shelf.batches()] == [1]
    assert not shelf.batches(1)


def test_the_guard_is_asked_each_time() -> None:
    shelf = sealed_shelf()
    shelf.accumulator.appender.guard.state = "IN_ERROR"
    with pytest.raises(IllegalStateError, match="IN_ERROR"):
        shelf.append()


def test_unsealed_it_takes_records_into_new_batches() -> None:
    shelf = sealed_shelf()
    shelf.accumulator.unseal()
    assert shelf.status() == APPENDED | NEW | FULL
    assert [batch.record_count for batch in shelf.batches()] == [1, 1]


def test_what_was_open_goes_without_waiting_for_linger() -> None:
    shelf = sealed_shelf(linger=1000)
    assert shelf.ready().nodes == [0]


@pytest.mark.parametrize("kind", [None, CompressionType.LZ4])
def test_what_was_open_is_closed_by_the_sender(kind: CompressionType | None) -> None:
    """No application thread compresses it, and the sender is not kept off."""
    codec = None if kind is None else compressor(kind)
    shelf = sealed_shelf(compressor=codec)
    (batch,) = shelf.drain(0)
    assert not batch.closing
    shelf.accumulator.closer.close_drained([batch])
    assert batch.closed
    assert read(batch, codec).count == 1


def test_who_waits_for_memory_is_woken_and_refused() -> None:
    shelf = Shelf(batch_size=100, pool=100)
    shelf.accumulator.appender.guard = Guard()
    shelf.append()
    ticket = CountingTicket()
    assert shelf.status(1, ticket=ticket) == WAIT
    shelf.accumulator.seal()
    assert ticket.woken == 1
    with pytest.raises(IllegalStateError):
        shelf.status(1, ticket=ticket)
    assert (shelf.pool.queued(), ticket.grant) == (0, None)


def test_a_grant_of_before_goes_back() -> None:
    shelf = Shelf(batch_size=100, pool=100)
    shelf.accumulator.appender.guard = Guard()
    shelf.append()
    ticket = CountingTicket()
    assert shelf.status(1, ticket=ticket) == WAIT
    (batch,) = shelf.drain(0)
    shelf.finish(batch)
    shelf.accumulator.seal()
    with pytest.raises(IllegalStateError):
        shelf.status(1, ticket=ticket)
    assert shelf.pool.available() == 100


def test_sealing_twice_and_closing_while_sealed() -> None:
    shelf = sealed_shelf()
    shelf.accumulator.seal()
    shelf.accumulator.close()
    with pytest.raises(ProducerClosedError):
        shelf.append()
    shelf.accumulator.unseal()
    with pytest.raises(ProducerClosedError):
        shelf.append()


def test_no_append_succeeds_after_seal_has_returned() -> None:
    """Four threads append while a fifth seals, looks, looks again, and unseals."""
    shelf = Shelf(batch_size=61 + 40 * RECORD, pool=50 << 20)
    shelf.accumulator.appender.guard = Guard()
    ended = threading.Event()
    accepted = [0] * 4

    def hammer(number: int) -> None:
        while not ended.is_set():
            try:
                shelf.append(number - 1)
            except IllegalStateError:
                continue
            accepted[number] += 1

    def records() -> int:
        return sum(batch.record_count for batch in shelf.accumulator.incomplete())

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(25):
            shelf.accumulator.seal()
            before = records()
            for _ in range(3):
                ended.wait(0.00001)
            assert records() == before
            assert all(batch.life != OPEN for batch in shelf.accumulator.incomplete())
            shelf.accumulator.unseal()
            ended.wait(0.0003)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert sum(accepted) == records() > 0


@pytest.mark.parametrize("seed", range(20))
def test_who_is_listed_whatever_the_order_they_end_in(seed: int) -> None:
    """Against a set: batches come, end in any order and are let go of twice, or are split."""
    chance = random.Random(seed)
    shelf = Shelf(batch_size=61 + 2 * RECORD)
    listed = shelf.accumulator.incomplete
    expected: set[ProducerBatch] = set()
    drained: list[ProducerBatch] = []
    for _ in range(300):
        what = chance.random()
        if what < 0.4:
            partition = chance.randrange(3)
            shelf.append(partition, 2)
            expected.add(shelf.batches(partition)[-1])
        elif what < 0.7:
            drained += shelf.drain(chance.randrange(2), 1)
        elif drained:
            batch = drained.pop(chance.randrange(len(drained)))
            expected.remove(batch)
            if what < 0.8 and batch.record_count > 1:
                shelf.accumulator.closer.close_drained([batch])
                split_and_reenqueue(shelf.accumulator, batch, None)
                expected.update(set(listed()) - expected - {batch})
            else:
                shelf.finish(batch)
                shelf.accumulator.deallocate(batch)
        assert set(listed()) == expected
        assert len(listed()) == len(expected) == len(shelf.accumulator.incomplete_batches)
    assert len(expected) > 10


def test_children_are_listed_in_their_parents_place() -> None:
    shelf = Shelf(batch_size=61 + 2 * RECORD)
    shelf.append(0, 4)
    listed = shelf.accumulator.incomplete_batches
    first, second = shelf.batches()
    (batch,) = shelf.drain(0)
    shelf.accumulator.closer.close_drained([batch])
    children = split(batch, 61 + RECORD)
    listed.replace(batch, children)
    assert first is batch
    assert set(listed.listed(0)) == {*children, second} and len(listed) == 3


@pytest.mark.skipif(forebay.implementation != "compiled", reason="interpreted, objects have dictionaries")
def test_what_waits_is_small() -> None:
    """A field too many in these and a queued record of 100 B costs more than 115 (python -m bench footprint)."""
    head = object.__basicsize__
    sizes = {kind.__name__: kind.__basicsize__ - head for kind in (ProducerBatch, BatchResult, Buffer, BatchAccount)}
    assert sum(sizes.values()) <= 512, sizes
