"""Splitting: what the parts hold, how large they are, where they stand, and what becomes of memory and futures."""

from __future__ import annotations

import random
from typing import Any

import pytest

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.split import split, split_and_reenqueue, split_size, write
from forebay._accumulator.states import OPEN
from forebay._records.compression import CompressionType, compressor
from forebay._records.ratio import CompressionRatioEstimator
from forebay.errors import CorruptRecordError, KafkaError, RecordTooLargeError
from forebay.model._gate import Gate
from tests.unit._accumulator.shelf import Shelf, quiet, read

HEADER = 61
KINDS = [None, *(kind for kind in CompressionType if kind != CompressionType.NONE)]


class Told(list[tuple[int, BaseException | None]]):
    """Offsets and errors that callbacks were called with."""

    def __call__(self, report: Any) -> None:
        self.append((report.metadata.offset, report.error))


def shelf_of(kind: CompressionType | None, **options: Any) -> Shelf:
    return Shelf(compressor=None if kind is None else compressor(kind), **{"pool": 1 << 20, **options})


def drained(shelf: Shelf) -> ProducerBatch:
    """The one batch there is, closed as the sender does."""
    shelf.accumulator.seal()
    shelf.accumulator.unseal()
    (batch,) = shelf.drain(0)
    shelf.accumulator.closer.close_drained([batch])
    return batch


def contents(batches: list[ProducerBatch], shelf: Shelf) -> list[tuple[Any, ...]]:
    return [
        (record.timestamp, record.key, record.value, record.headers)
        for batch in batches
        for record in read(batch, shelf.compressor).records
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_parts_hold_the_same_records(kind: CompressionType | None) -> None:
    """E testSplitPreservesHeaders: keys, values, timestamps and headers, null and empty ones too."""
    shelf = shelf_of(kind, batch_size=8192)
    values = [b"there", None, b"", bytes(300), b"\xff" * 40] * 6
    for number, value in enumerate(values):
        key = None if number % 3 else b"key %d" % number
        shelf.append(0, 1, value, key, timestamp=1000 - number * 37, headers=[("h\u00e9", b"v"), ("n", None)])
    batch = drained(shelf)
    before = contents([batch], shelf)
    parts = split(batch, 500)
    assert len(parts) >= 2
    assert contents(parts, shelf) == before
    assert [entry[2] for entry in before] == values


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_batches_of_the_same_kind(kind: CompressionType | None) -> None:
    """E testSplitPreservesMagicAndCompressionType: for what is magic 2, which all of ours are until they are sent."""
    shelf = shelf_of(kind, batch_size=1024)
    shelf.append(0, 40, b"there", b"hi")
    batch = drained(shelf)
    shelf.clock.advance(5)
    parts = split(batch, 512)
    assert len(parts) >= 2
    for part in parts:
        found = read(part, shelf.compressor)
        assert (found.magic, found.codec, found.base_offset) == (2, kind or CompressionType.NONE, 0)
        assert part.records.raw_size + HEADER <= 512
        assert (part.created, part.attempts) == (batch.created, 0)
        assert part.life != OPEN and not part.has_sequence()


def test_a_record_larger_than_the_target_is_alone() -> None:
    shelf = shelf_of(None, batch_size=4096)
    for size in (10, 900, 10, 10):
        shelf.append(0, 1, bytes(size))
    parts = split(drained(shelf), 200)
    assert [part.record_count for part in parts] == [1, 1, 2]


@pytest.mark.parametrize(
    ("batch_size", "largest", "expected"),
    [
        (400, 100, 400),  # batch.estimated_size(), if it is less than what was refused
        (1000, 100, 500),  # else half of that
        (4000, 100, 500),
        (4000, 700, 761),  # but never below the largest record
        (4000, 900, 961),
        (1, 100, 161),
    ],
)
def test_targets_shrink(batch_size: int, largest: int, expected: int) -> None:
    shelf = shelf_of(None, batch_size=1000)
    shelf.append(0, 1, bytes(largest - (9 if largest > 70 else 7)), None)
    (batch,) = shelf.batches()
    while batch.estimated_size() + 20 <= 1000:
        shelf.append(0, 1, bytes(13), None)
    assert batch.records.max_record_size == largest and 980 <= batch.estimated_size() <= 1000
    assert split_size(batch, batch_size) == pytest.approx(expected, abs=10)


@pytest.mark.parametrize("kind", KINDS)
def test_any_batch_of_two_records_comes_apart(kind: CompressionType | None) -> None:
    """22.3: also where batch.size is above what the broker takes, and where compression has made it larger."""
    shelf = shelf_of(kind, batch_size=100_000)
    shelf.append(0, 2, b"", None)
    batch = drained(shelf)
    for batch_size in (1, 90, 100_000):
        assert len(split(batch, split_size(batch, batch_size))) == 2


def test_splitting_comes_to_an_end() -> None:
    """22.3: the size of what is refused halves with each round, as far as single records."""
    shelf = shelf_of(None, batch_size=10_000)
    shelf.append(0, 64, bytes(100), None)
    rounds = 0
    waiting = [drained(shelf)]
    while waiting[0].record_count > 1:
        rounds += 1
        shelf.accumulator.closer.close_drained(waiting)
        waiting = [part for batch in waiting for part in split(batch, split_size(batch, 10_000))]
        assert sum(part.record_count for part in waiting) == 64
    assert rounds <= 8


def test_split_and_reenqueue() -> None:
    """B testSplitAndReenqueue: the first part, then the second; each record is acknowledged at its own offset."""
    shelf = shelf_of(CompressionType.GZIP, batch_size=4096, linger=10)
    told = Told()
    futures = [shelf.append(0, 1, bytes(1024), None, callback=told) for _ in range(2)]
    batch = drained(shelf)
    assert batch.record_count == 2
    shelf.schedule.reenqueue(batch, shelf.now, None)
    shelf.clock.advance(121)
    assert shelf.drain(0) == [batch]
    assert split_and_reenqueue(shelf.accumulator, batch, None) == 2
    shelf.clock.advance(101)
    for offset, future in enumerate(futures):
        (part,) = shelf.drain(0)
        assert part.complete(offset, -1, quiet)
        shelf.accumulator.deallocate(part)
        assert [future.done() for future in futures].count(True) == offset + 1 == len(told)
        assert future.result(0).offset == offset
    assert told == [(0, None), (1, None)]


def test_the_parts_are_ready_at_once_and_stand_first() -> None:
    shelf = shelf_of(None, batch_size=1024, linger=1000)
    shelf.append(0, 30)
    batch = drained(shelf)
    shelf.append(0, 1, b"later")
    split_and_reenqueue(shelf.accumulator, batch, None)
    assert shelf.ready().nodes == [0]
    later = shelf.batches()[-1]
    parts = shelf.batches()[:-1]
    assert len(parts) > 1 and sum(part.record_count for part in parts) == 30
    assert all(part.life != OPEN for part in parts) and later.life == OPEN


@pytest.mark.parametrize("kind", [None, CompressionType.GZIP])
def test_memory_of_parts_is_counted(kind: CompressionType | None) -> None:
    """B testSplitBatchOffAccumulator: Java's parts are no pool memory, ours are; in the end all of it is back."""
    estimator = CompressionRatioEstimator()
    estimator.set("test", CompressionType.GZIP, 0.1)
    pool = 8192
    shelf = shelf_of(kind, batch_size=1024, pool=pool, estimator=estimator)
    source = random.Random(4)
    records = 20 if kind else 8
    for _ in range(records):
        shelf.append(0, 1, source.randbytes(100), None)
    batch = drained(shelf)
    assert split_and_reenqueue(shelf.accumulator, batch, None) > 0
    assert batch.records.buffers == [] and batch.done
    parts = shelf.batches()
    assert set(shelf.accumulator.incomplete()) == set(parts)
    held = sum(buffer.size for part in parts for buffer in part.records.buffers)
    assert held == sum(part.records.raw_size for part in parts)
    assert shelf.pool.available() <= pool - held
    while found := shelf.drain(0):
        assert len(found) == 1
        shelf.accumulator.closer.close_drained(found)
        shelf.finish(found[0])
    assert shelf.ready(send_all=True).nodes == []
    assert shelf.pool.available() == pool


def test_the_ratio_starts_again() -> None:
    shelf = shelf_of(CompressionType.GZIP, batch_size=1024)
    shelf.estimator.set("test", CompressionType.GZIP, 0.2)
    shelf.append(0, 20, b"0123456789" * 10)
    batch = drained(shelf)
    assert batch.records.observed_ratio() < 1
    split_and_reenqueue(shelf.accumulator, batch, None)
    assert shelf.estimator.estimation("test", CompressionType.GZIP) == 1.0


@pytest.mark.parametrize("good", [1, 10, 25, 50, 75, 90, 99])
def test_split_frequency(good: int) -> None:
    """B testSplitFrequency: with the estimate fewer than one batch in ten turns out too large, whatever the mix."""
    source = random.Random(good)
    shelf = shelf_of(CompressionType.GZIP, batch_size=1024)
    batches = splits = 0

    def look() -> None:
        nonlocal batches, splits
        for batch in shelf.drain(0):
            shelf.accumulator.closer.close_drained([batch])
            batches += 1
            splits += batch.estimated_size() > 1024 + HEADER
            shelf.finish(batch)

    for _ in range(1000):
        value = b"%0100d" % source.randrange(1000) if source.randrange(100) < good else source.randbytes(100)
        shelf.append(0, 1, value, None)
        if shelf.batches()[0].is_full():
            look()
    look()
    assert splits / batches < 0.1


class Sharing(Gate):
    """BrokerQuotas sequences out as the transaction manager does, and knows the order."""

    def __init__(self) -> None:
        self.splits: list[list[int]] = []

    def on_split(self, batch: Any, children: Any) -> int:
        sequence = batch.base_sequence
        for child in children:
            child.set_producer_state(batch.producer_id, batch.producer_epoch, sequence, batch.transactional)
            sequence += child.record_count
        self.splits.append([child.base_sequence for child in children])
        return 0

    def comes_before(self, batch: Any, other: Any) -> bool:
        return bool(other.base_sequence < 0 or batch.base_sequence < other.base_sequence)


def test_sequences_are_shared_and_order_the_queue() -> None:
    shelf = shelf_of(None, batch_size=1024)
    shelf.append(0, 30)
    batch = drained(shelf)
    batch.set_producer_state(7, 1, 100, True)
    shelf.append(0, 1, b"later")
    gate = Sharing()
    count = split_and_reenqueue(shelf.accumulator, batch, gate)
    parts = shelf.batches()[:count]
    assert [part.base_sequence for part in parts] == gate.splits[0] == sorted(gate.splits[0])
    assert gate.splits[0][0] == 100
    assert all((part.producer_id, part.producer_epoch, part.transactional) == (7, 1, True) for part in parts)


def test_what_cannot_be_read_back_changes_nothing() -> None:
    shelf = shelf_of(CompressionType.GZIP, batch_size=1024)
    future = shelf.append(0, 5)
    batch = drained(shelf)
    batch.records.payload[0] = b"damaged"
    free = shelf.pool.available()
    with pytest.raises(CorruptRecordError):
        split_and_reenqueue(shelf.accumulator, batch, None)
    assert shelf.pool.available() == free
    assert not batch.done and not future.done() and shelf.accumulator.incomplete() == [batch]


def test_flush_waits_for_the_parts() -> None:
    """22.2: the parent's result is done when all parts are."""
    shelf = shelf_of(None, batch_size=1024)
    shelf.append(0, 30)
    (parent,) = shelf.accumulator.begin_flush()
    assert parent is drained(shelf)
    split_and_reenqueue(shelf.accumulator, parent, None)
    parts = [part for _ in range(len(shelf.batches())) for part in shelf.drain(0)]
    for part in parts:
        assert not parent.result.done and shelf.accumulator.has_incomplete()
        shelf.finish(part)
    assert parent.result.done and not shelf.accumulator.has_incomplete()


def test_a_split_batch_has_no_outcome_of_its_own() -> None:
    shelf = shelf_of(None, batch_size=1024)
    future = shelf.append(0, 30)
    batch = drained(shelf)
    split_and_reenqueue(shelf.accumulator, batch, None)
    assert "split" in repr(batch)
    assert not batch.complete(5, -1, quiet)
    assert not batch.fail(KafkaError("late"), None, quiet)
    assert not future.done()


@pytest.mark.parametrize("turn", [slice(None), slice(None, None, -1)])
def test_parts_that_come_back_stand_in_their_order(turn: slice) -> None:
    """Without sequences too, and parts of parts: a lost connection gives back all that was in flight."""
    shelf = shelf_of(None, batch_size=1024)
    shelf.append(0, 60)
    batch = drained(shelf)
    shelf.append(0, 1)
    parts = [shelf.drain(0)[0] for _ in range(split_and_reenqueue(shelf.accumulator, batch, None))]
    shelf.accumulator.closer.close_drained(parts)
    parts[1:2] = [shelf.drain(0)[0] for _ in range(split_and_reenqueue(shelf.accumulator, parts[1], None))]
    assert len(parts) >= 4
    assert [part.result.first for part in parts] == sorted(part.result.first for part in parts)
    for part in parts[turn]:
        shelf.schedule.reenqueue(part, shelf.now, None)
    assert shelf.batches()[: len(parts)] == parts


def test_a_record_that_a_part_does_not_take_is_not_lost() -> None:
    """Two GiB of records that compress, estimated above what fits an int32; here a part that is closed."""
    shelf = shelf_of(None)
    shelf.append(0, 10)
    batch = drained(shelf)
    part = split(batch, 100)[0]
    before = part.record_count
    with pytest.raises(RecordTooLargeError, match=f"{part.records.raw_size} bytes and one more record"):
        write(part, read(batch).records[0])
    assert part.record_count == before
