"""Chunks begin about as large as the partition's last batch, grow with the records, and give back what stays empty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forebay._accumulator import chunks
from forebay._accumulator.chunks import grow, shrunk
from forebay._accumulator.closing import make_final
from forebay._accumulator.pool import BufferPool
from forebay._accumulator.states import APPENDED
from forebay._records.compression import CompressionType, compressor
from forebay._records.ratio import CompressionRatioEstimator
from tests.fakes.tickets import CountingTicket
from tests.fakes.world import World
from tests.unit._accumulator.shelf import WAIT, Shelf, read

INTERPRETED = str(chunks.__file__).endswith(".py")
BATCH = 4096
RECORD_OVERHEAD = 9
"""Of a record with a value of 128 to 8,191 bytes and no key: two sizes in two bytes each, and five fields of one."""


def sizes(shelf: Shelf, partition: int = 0) -> list[int]:
    """Of the chunks of the partition's last batch."""
    return [buffer.size for buffer in shelf.batches(partition)[-1].records.buffers]


def last_batch_of(shelf: Shelf, raw: int) -> None:
    """The partition's last batch had so many bytes of records; it is gone."""
    value = bytes(raw - RECORD_OVERHEAD)
    shelf.append(value=value, key=None)
    (batch,) = shelf.drain(0)
    assert batch.records.raw_size == raw
    shelf.accumulator.deallocate(batch)


@pytest.mark.parametrize(
    ("value", "expected", "chunk"),
    [
        (10, 0, 128),
        (119, 0, 128),
        (300, 0, 309),
        (2039, 0, 2048),
        (2040, 0, BATCH),  # more than half
        (4000, 0, BATCH),
        (4026, 0, BATCH),
        (4027, 0, BATCH + 1),  # larger than a batch: as large as its header and its records
        (10, 200, 225),
        (300, 200, 309),
        (10, 1821, 2048),
        (10, 1822, BATCH),
        (10, 5000, BATCH),
    ],
)
def test_the_first_chunk_is_about_what_the_last_batch_held(value: int, expected: int, chunk: int) -> None:
    shelf = Shelf(batch_size=BATCH)
    if expected:
        last_batch_of(shelf, expected)
    shelf.append(value=bytes(value), key=None)
    assert sizes(shelf) == [chunk]
    assert shelf.pool.available() == shelf.pool.total - chunk


def test_each_partition_has_its_own_past() -> None:
    shelf = Shelf(batch_size=BATCH)
    last_batch_of(shelf, 1000)
    shelf.append(0, value=b"v")
    shelf.append(1, value=b"v")
    assert (sizes(shelf, 0), sizes(shelf, 1)) == ([1125], [128])


def test_a_chunk_doubles_up_to_a_whole_one() -> None:
    shelf = Shelf(batch_size=BATCH)
    seen: list[int] = []
    while True:
        shelf.append(value=bytes(40), key=None)
        if len(shelf.batches()) > 1:
            break
        if sizes(shelf) != seen[-1:]:
            seen += sizes(shelf)
        assert shelf.pool.available() == shelf.pool.total - seen[-1]
    batch = shelf.batches()[0]
    assert seen == [128, 256, 512, 1024, 2048, BATCH]
    assert batch.estimated_size() > BATCH - 100, "a growing batch becomes as full as any other"
    make_final(batch, None)
    assert [record.value for record in read(batch).records] == [bytes(40)] * batch.record_count


def test_it_grows_at_once_to_what_a_record_needs() -> None:
    shelf = Shelf(batch_size=BATCH)
    shelf.append(value=b"v", key=None)
    shelf.append(value=bytes(900), key=None)
    assert 900 < sizes(shelf)[0] < 1000
    shelf.append(value=bytes(1800), key=None)
    assert sizes(shelf) == [BATCH]


def test_what_was_written_stays_as_it_is() -> None:
    shelf = Shelf(batch_size=BATCH)
    values = [b"%d" % number * 20 for number in range(100)]
    for number, value in enumerate(values):
        shelf.append(value=value, timestamp=number)
    written: list[Any] = []
    for batch in shelf.batches():
        make_final(batch, None)
        written += [(record.value, record.timestamp) for record in read(batch).records]
    assert written == [(value, number) for number, value in enumerate(values)]


def test_a_compressed_batch_grows_to_a_whole_chunk_before_it_takes_a_further_one() -> None:
    estimator = CompressionRatioEstimator()
    estimator.set("test", CompressionType.LZ4, 0.01)
    codec = compressor(CompressionType.LZ4)
    shelf = Shelf(batch_size=BATCH, compressor=codec, estimator=estimator)
    seen: list[list[int]] = []
    while len(seen) < 8:
        shelf.append(value=bytes(40), key=None)
        if seen[-1:] != [sizes(shelf)]:
            seen.append(sizes(shelf))
    assert seen == [[128 << number] for number in range(6)] + [[BATCH] * 2, [BATCH] * 3]
    (batch,) = shelf.batches()
    make_final(batch, codec)
    assert read(batch, codec).count == batch.record_count


@pytest.mark.parametrize("codec", [None, compressor(CompressionType.LZ4)])
def test_a_batch_that_cannot_grow_is_full(codec: Any) -> None:
    """All memory is held, and the overdraft, too: the next record waits for a batch of its own."""
    shelf = Shelf(batch_size=BATCH, pool=2 * BATCH, compressor=codec)
    shelf.append(value=bytes(100), key=None)
    held = shelf.pool.allocate(shelf.pool.available(), 0, None)
    assert held is not None
    ticket = CountingTicket()
    while (status := shelf.status(value=bytes(100), key=None, ticket=ticket)) == APPENDED:
        assert shelf.pool.available() >= -shelf.pool.total // 8
    (batch,) = shelf.batches()
    assert status == WAIT and batch.is_full() and batch.record_count > 1
    held.release()
    assert ticket.woken == 1 and shelf.status(value=bytes(100), key=None, ticket=ticket) & APPENDED


def test_a_chunk_grows_ahead_of_those_that_wait_but_not_above_its_owner_s_share() -> None:
    shelf = Shelf(batch_size=BATCH, pool=64 * BATCH, node_share=16 * BATCH, leaders=(0, 1))
    shelf.append(0, value=bytes(100), key=None)
    shelf.append(1, value=bytes(100), key=None)
    share = 16 * BATCH - sizes(shelf)[0]
    held = shelf.pool.allocate(share, 0, None)
    assert held is not None and shelf.pool.allocate(1, 0, CountingTicket()) is None
    shelf.append(0, 20, value=bytes(100), key=None)
    assert sizes(shelf) == [BATCH], "within the overdraft of its share"
    shelf.pool.charge(0, BATCH)
    shelf.append(1, 20, value=bytes(100), key=None)
    assert sizes(shelf, 1) == [BATCH], "another owner's share is another's"


def test_growth_is_exact_and_never_more_than_allowed() -> None:
    pool = BufferPool(1000, 100)
    buffer = pool.allocate(10, 0, None)
    assert buffer is not None
    buffer.data[:10] = b"0123456789"
    for least, size in ((11, 20), (50, 50), (51, 100)):
        assert grow(buffer, least, 100)
        assert (buffer.size, len(buffer.data), pool.available()) == (size, size, 1000 - size)
        assert bytes(buffer.data[:10]) == b"0123456789"
    buffer.release()
    assert pool.available() == 1000 and len(pool.free) == 1, "a chunk that grew to a whole one is kept for reuse"


@pytest.mark.parametrize(
    ("batch_size", "last", "chunk", "value", "shrinks"),
    [
        (BATCH, 4000, BATCH, 10, True),
        (BATCH, 4000, BATCH, 2030, True),
        (BATCH, 4000, BATCH, 2041, False),  # more than half full
        (BATCH, 4000, BATCH, 4000, False),
        (BATCH, 1000, 1125, 10, True),
        (BATCH, 240, 270, 10, False),  # what is empty is less than a sixteenth of a whole one
        (1 << 20, 1000, 1125, 10, True),
        (1 << 20, 900, 1012, 10, False),
    ],
)
def test_a_closed_batch_gives_back_what_it_does_not_need(
    batch_size: int, last: int, chunk: int, value: int, shrinks: bool
) -> None:
    shelf = Shelf(batch_size=batch_size)
    last_batch_of(shelf, last)
    shelf.append(value=bytes(value), key=None)
    assert sizes(shelf) == [chunk]
    (batch,) = shelf.drain(0)
    make_final(batch, None)
    (buffer,) = batch.records.buffers
    assert buffer.size == (batch.records.raw_size if shrinks else chunk)
    assert shelf.pool.available() == shelf.pool.total - buffer.size
    assert len(shelf.pool.free) == (shrinks and chunk == batch_size), "a whole chunk is there for another batch"
    assert [record.value for record in read(batch).records] == [bytes(value)]
    batch.release()
    assert shelf.pool.available() == shelf.pool.total


def test_waiters_get_what_a_closed_batch_gives_back() -> None:
    shelf = Shelf(batch_size=BATCH, pool=BATCH)
    last_batch_of(shelf, BATCH - 100)
    shelf.append(value=b"v")
    ticket = CountingTicket()
    assert shelf.status(1, value=b"v", ticket=ticket) == WAIT
    (batch,) = shelf.drain(0)
    make_final(batch, None)
    assert ticket.woken == 1 and shelf.status(1, value=b"v", ticket=ticket) & APPENDED


def test_a_record_in_each_of_ten_thousand_partitions_takes_a_quarter_of_the_default_buffer() -> None:
    world = World(topics={"test": 10_000})
    world.queue()
    state = world.accumulator.topic("test")
    for partition in range(10_000):
        status, _ = world.accumulator.appender.append_bytes(state, partition, bytes(100), now=0.0)
        assert status & APPENDED
    assert world.pool.total == 32 << 20 and world.pool.total - world.pool.available() <= 8 << 20


def failing(count: int, work: Callable[[], Any]) -> Any:
    """What ``work`` gives while the allocation of this number fails."""
    testcapi = pytest.importorskip("_testcapi", reason="this Python has no test modules, which fail allocations")
    testcapi.set_nomemory(count, count + 1)
    try:
        return work()
    finally:
        testcapi.remove_mem_hooks()


@pytest.mark.skipif(INTERPRETED, reason="interpreted, any line may fail")
def test_without_memory_of_the_system_nothing_changes() -> None:
    """Whatever allocation fails: the chunk is as large as it is counted, and what was written is there."""
    pool = BufferPool(1 << 20, BATCH)
    refused = 0
    for count in range(20):
        buffer = pool.allocate(2000, 0, None)
        assert buffer is not None
        buffer.data[:5] = b"first"
        grown = failing(count, lambda buffer=buffer: grow(buffer, 3000, BATCH))  # type: ignore[misc]
        refused += not grown
        assert buffer.size == (BATCH if grown else 2000) and pool.available() == (1 << 20) - buffer.size
        assert bytes(buffer.data[:5]) == b"first"
        small = failing(count, lambda buffer=buffer: shrunk(buffer))  # type: ignore[misc]
        assert pool.available() == (1 << 20) - buffer.size - (0 if small is None else small.size)
        if small is not None:
            small.release()
        buffer.release()
    assert refused > 0
