"""Appending: which batch a record comes into, when memory is asked for, and what flush and close may rely on."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.states import OPEN
from forebay._records.codec_packages import Chunk
from forebay._records.compression import CompressionType, Compressor, compressor
from forebay.errors import IllegalArgumentError, KafkaError
from tests.fakes.tickets import CountingTicket
from tests.support.pace import HANG_S
from tests.unit._accumulator.shelf import APPENDED, FULL, KEY, NEW, RECORD, WAIT, Shelf, quiet, read

EXPECTED_APPENDS = 68
"""Records of KEY and VALUE that fit into 1025 bytes: 1024 of them."""


class PausedCompressor(Compressor):
    """Stops in the middle of compressing until told to go on; may fail first."""

    type = CompressionType.ZSTD

    def __init__(self, *, failures: int = 0) -> None:
        super().__init__(3)
        self.inner = compressor(CompressionType.ZSTD)
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.failures = failures
        self.seen: list[bytes] = []

    def compress(self, chunks: Sequence[Chunk], topic: str = "") -> bytes:
        self.begun.set()
        assert self.go_on.wait(HANG_S)
        if self.failures:
            self.failures -= 1
            raise MemoryError("none left")
        self.seen.append(b"".join(bytes(chunk) for chunk in chunks))
        return self.inner.compress(chunks)

    def bound(self, size: int, chunks: int = 1) -> int:
        return self.inner.bound(size, chunks)


def test_a_large_record_gets_memory_of_its_own() -> None:
    """B testAppendLargeNonCompressed, testAppendLargeOldMessageFormatNonCompressed: larger than batch.size."""
    shelf = Shelf(batch_size=512 + 61, pool=10 * 1024)
    assert shelf.status(0, bytes(1024)) & NEW
    assert shelf.ready().nodes == [0]
    (batch,) = shelf.batches()
    found = read(batch)
    assert (found.count, found.base_offset) == (1, 0)
    (record,) = found.records
    assert (record.offset, record.timestamp, record.key, record.value) == (0, 0, KEY, bytes(1024))


def test_a_large_record_compressed() -> None:
    """B testAppendLargeCompressed, testAppendLargeOldMessageFormatCompressed: gzip."""
    codec = compressor(CompressionType.GZIP)
    shelf = Shelf(batch_size=512 + 61, pool=10 * 1024, compressor=codec)
    shelf.append(0, 1, bytes(1024))
    assert shelf.ready().nodes == [0]
    (batch,) = shelf.batches()
    (record,) = read(batch, codec).records
    assert (record.offset, record.timestamp, record.value) == (0, 0, bytes(1024))


def test_how_many_records_fit() -> None:
    """B (common): 68 records of 15 bytes, and of 16 from offset 64 on, make 1024 of 1025 bytes."""
    shelf = Shelf(batch_size=1025 + 61)
    shelf.append(0, EXPECTED_APPENDS)
    (batch,) = shelf.batches()
    assert batch.records.raw_size == 1024 == 64 * RECORD + 4 * (RECORD + 1)
    assert shelf.status() & (FULL | NEW) == FULL | NEW
    assert [batch.record_count for batch in shelf.batches()] == [68, 1]


def test_status_tells_when_to_wake_the_sender() -> None:
    shelf = Shelf(batch_size=61 + 2 * RECORD)
    assert shelf.status() == APPENDED | NEW
    assert shelf.status() == APPENDED | FULL  # exactly at the limit
    assert shelf.status() == APPENDED | NEW | FULL  # a second batch stands behind a full one
    assert shelf.status(1) == APPENDED | NEW


def test_without_memory_the_ticket_waits() -> None:
    shelf = Shelf(batch_size=100, pool=100)
    shelf.append()
    ticket = CountingTicket()
    assert shelf.status(1) == WAIT
    assert shelf.status(1, ticket=ticket) == WAIT
    assert (shelf.pool.queued(), ticket.woken) == (1, 0)
    (batch,) = shelf.drain(0)
    shelf.finish(batch)
    assert ticket.woken == 1
    assert shelf.status(1, ticket=ticket) == APPENDED | NEW
    assert (shelf.pool.available(), ticket.grant) == (0, None)


def test_a_grant_that_is_not_needed_any_more_goes_back() -> None:
    """Another thread made the batch meanwhile: the memory that was waited for is let go."""
    shelf = Shelf(batch_size=200, pool=400)
    blocking = shelf.pool.allocate(400, 0, None)
    ticket = CountingTicket()
    assert shelf.status(0, ticket=ticket) == WAIT
    assert blocking is not None
    blocking.release()
    assert ticket.woken == 1
    shelf.append()
    assert shelf.status(0, ticket=ticket) == APPENDED
    assert (shelf.pool.available(), shelf.pool.queued()) == (200, 0)


def test_more_than_the_pool_is_refused() -> None:
    shelf = Shelf(batch_size=100, pool=200)
    with pytest.raises(IllegalArgumentError, match="buffer.memory"):
        shelf.append(0, 1, bytes(300))
    assert shelf.pool.available() == 200


def test_closed_while_waiting_for_memory() -> None:
    shelf = Shelf(batch_size=100, pool=100)
    shelf.append()
    ticket = CountingTicket()
    assert shelf.status(1, ticket=ticket) == WAIT
    shelf.accumulator.close()
    assert ticket.woken == 1
    with pytest.raises(KafkaError, match="Producer closed"):
        shelf.status(1, ticket=ticket)


def test_sticky_partition_moves_on_with_full_batches() -> None:
    """B testUniformBuiltInPartitioner: a partition is left only when its batch is full or there is none."""
    shelf = Shelf(batch_size=1024, pool=1 << 20, leaders=(0, 0, 0))
    large = bytes(1024)

    def filled() -> list[int]:
        return [sum(batch.record_count for batch in shelf.batches(partition)) for partition in range(3)]

    shelf.append(-1, 1, b"small", None)
    assert filled() == [1, 0, 0]
    shelf.append(-1, 1, large, None)
    assert filled() == [2, 0, 0]
    for expected in ([2, 1, 0], [2, 1, 1], [3, 1, 1]):
        shelf.append(-1, 1, large, None)
        assert filled() == expected


def test_no_fractional_batches() -> None:
    """B testBuiltInPartitionerFractionalBatches: what lingers together stays together."""
    shelf = Shelf(batch_size=512, linger=10, leaders=(0, 0, 0))
    for _ in range(10):
        for _ in range(512 * 2 // 3 // 32):
            shelf.append(-1, 1, bytes(32), None)
        shelf.clock.advance(10)
        assert shelf.ready().nodes == [0]
        (batch,) = shelf.drain(0)
        assert 256 < batch.estimated_size() < 512


def test_compressed_batches_hold_more_than_their_memory() -> None:
    """Where the ratio promises room below batch.estimated_size(), further chunks are taken if they are free at once."""
    codec = compressor(CompressionType.ZSTD)
    shelf = Shelf(batch_size=1024, pool=64 * 1024, compressor=codec)
    for _ in range(200):
        shelf.estimator.update("test", CompressionType.ZSTD, 0.1)
    shelf.append(0, 300, b"value" * 4)
    first = shelf.batches()[0]
    assert first.records.raw_size > 4 * 1024
    assert len(first.records.buffers) == len(shelf.batches()[0].records.buffers)
    assert first.estimated_size() <= 1024 + 61
    count = sum(batch.record_count for batch in shelf.batches())
    assert count == 300
    values = [record.value for batch in shelf.batches() for record in read(batch, codec).records]
    assert values == [b"value" * 4] * 300


def test_no_further_chunk_while_somebody_waits_for_memory() -> None:
    codec = compressor(CompressionType.ZSTD)
    shelf = Shelf(batch_size=1024, pool=2048, compressor=codec)
    for _ in range(200):
        shelf.estimator.update("test", CompressionType.ZSTD, 0.1)
    shelf.append(0, 1)
    waiting = CountingTicket()
    assert shelf.pool.allocate(2048, 0, waiting) is None
    first = shelf.batches()[0]
    while first.life == OPEN:
        assert shelf.accumulator.appender.append_bytes(shelf.topic, 0, b"value", now=shelf.now)[0] in (WAIT, APPENDED)
    assert len(first.records.payload) == 1 and first.closed  # closed and compressed by the thread that filled it
    assert waiting.woken == 0 and first.records.raw_size <= 1024


def test_who_fills_a_batch_compresses_it() -> None:
    codec = compressor(CompressionType.ZSTD)
    shelf = Shelf(batch_size=200, compressor=codec)
    shelf.append(0, 1, bytes(range(250)))
    (batch,) = shelf.batches()
    assert batch.is_full() and batch.closed and not batch.closing


def test_what_cannot_be_compressed_by_the_filler_is_left_to_the_sender() -> None:
    codec = PausedCompressor(failures=1)
    codec.go_on.set()
    shelf = Shelf(batch_size=200, compressor=codec)
    future = shelf.append(0, 1, bytes(range(250)))  # the record was taken, so send() does not raise
    (batch,) = shelf.batches()
    assert (batch.closed, batch.closing, future.done()) == (False, False, False)
    assert [each.record_count for each in shelf.drain(0)] == [1]
    shelf.accumulator.closer.close_drained([batch])
    assert batch.closed


def test_an_abort_while_compressing_keeps_the_memory_until_the_end_of_it() -> None:
    """A forced close must not give memory back that a compressing thread still reads."""
    codec = PausedCompressor()
    shelf = Shelf(batch_size=200, pool=400, compressor=codec)
    value = bytes(range(250))
    filler = threading.Thread(target=lambda: shelf.append(0, 1, value))
    filler.start()
    assert codec.begun.wait(HANG_S)
    (batch,) = shelf.accumulator.take_waiting()
    batch.abort(KafkaError("forced"), quiet)
    shelf.accumulator.deallocate(batch)
    assert shelf.pool.available() == 400 - batch.records.write_limit
    codec.go_on.set()
    filler.join(HANG_S)
    assert shelf.pool.available() == 400
    assert value in codec.seen[0]
    assert not shelf.accumulator.has_incomplete()


def test_the_sender_closes_all_it_drained_in_one_call() -> None:
    codec = compressor(CompressionType.LZ4)
    shelf = Shelf(batch_size=4096, compressor=codec, leaders=(0, 0, 0))
    for partition in range(3):
        shelf.append(partition, 5)
    batches = shelf.drain(0)
    shelf.accumulator.closer.close_drained(batches)
    assert all(batch.closed for batch in batches)
    assert [read(batch).count for batch in batches] == [5, 5, 5]


def test_a_batch_counts_before_the_schedule_hears_of_it() -> None:
    """Between the append and the activation of its queue nothing may be lost to a close."""
    shelf = Shelf()
    seen: list[tuple[bool, int]] = []

    class Spy:
        def announce(self, queue: Any) -> None:
            seen.append((shelf.accumulator.has_incomplete(), len(queue.batches)))

    if hasattr(type(shelf.accumulator), "__pyx_vtable__"):
        shelf.append()  # compiled, the schedule cannot be replaced; the order is the same source's
        assert len(shelf.accumulator.take_waiting()) == 1
        return
    shelf.accumulator.appender.schedule = Spy()  # type: ignore[assignment]
    shelf.append()
    assert seen == [(True, 1)]


def test_a_batch_without_a_record_is_never_waited_for() -> None:
    """A thread that finds room in another's batch leaves none of its own behind."""
    shelf = Shelf(batch_size=4096, pool=1 << 20)
    incomplete: list[list[ProducerBatch]] = []
    threads = [threading.Thread(target=lambda: shelf.append(0, 300)) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        incomplete.append(shelf.accumulator.incomplete())
    for thread in threads:
        thread.join()
    assert all(batch.record_count > 0 for batches in incomplete for batch in batches)
    assert sum(batch.record_count for batch in shelf.batches()) == 1200
    assert set(shelf.accumulator.incomplete()) == set(shelf.batches())
    assert shelf.pool.available() == (1 << 20) - 4096 * len(shelf.batches())


def test_close_refuses_what_would_begin_a_batch_behind_it() -> None:
    shelf = Shelf()
    shelf.accumulator.close()
    with pytest.raises(KafkaError):
        shelf.append(0)
    assert not shelf.accumulator.has_incomplete()
    assert shelf.pool.available() == shelf.pool.total


@pytest.mark.parametrize("failures", [0, 1])
def test_whoever_compressed_a_batch_wakes_the_sender(failures: int) -> None:
    """The sender passes such a batch over, and sets itself no time to look again."""
    codec = PausedCompressor(failures=failures)
    shelf = Shelf(batch_size=200, compressor=codec)
    closing_at_wake: list[bool] = []
    shelf.accumulator.closer.wake = lambda: closing_at_wake.append(shelf.batches()[0].closing)
    filler = threading.Thread(target=lambda: shelf.append(0, 1, bytes(range(250))))
    filler.start()
    assert codec.begun.wait(HANG_S)
    found = shelf.ready()
    assert (found.nodes, found.next_check, closing_at_wake) == ([], math.inf, [])
    codec.go_on.set()
    filler.join(HANG_S)
    assert closing_at_wake == [False]
    assert shelf.ready().nodes == [0]


class InterruptedCompressor(PausedCompressor):
    def compress(self, chunks: Sequence[Chunk], topic: str = "") -> bytes:
        raise KeyboardInterrupt


def test_ctrl_c_while_a_first_batch_is_compressed() -> None:
    """The record was taken: its queue stands in line, and its memory belongs to the batch alone."""
    shelf = Shelf(batch_size=200, pool=1000, compressor=InterruptedCompressor())
    with pytest.raises(KeyboardInterrupt):
        shelf.append(0, 1, bytes(range(250)))
    assert shelf.ready().nodes == [0]
    (batch,) = shelf.drain(0)
    assert shelf.pool.available() == 1000 - batch.records.write_limit
    shelf.finish(batch)
    assert shelf.pool.available() == 1000


def test_ctrl_c_before_a_batch_exists_gives_the_memory_back() -> None:
    class Interrupted:
        def estimation(self, topic: str, codec: CompressionType) -> float:
            raise KeyboardInterrupt

    estimator: Any = Interrupted()
    shelf = Shelf(batch_size=200, pool=1000, compressor=compressor(CompressionType.ZSTD), estimator=estimator)
    with pytest.raises(KeyboardInterrupt):
        shelf.append()
    assert shelf.pool.available() == 1000
    assert not shelf.accumulator.has_incomplete()


def test_a_record_larger_than_a_chunk_takes_one_piece_of_memory() -> None:
    """However well the topic compresses: further chunks would never hold it."""
    shelf = Shelf(batch_size=1024, pool=1 << 20, compressor=compressor(CompressionType.ZSTD))
    for _ in range(200):
        shelf.estimator.update("test", CompressionType.ZSTD, 0.01)
    shelf.append(0, 1, b"small")
    shelf.append(0, 1, bytes(10_000))
    first, second = shelf.batches()
    assert (first.record_count, second.record_count) == (1, 1)
    assert second.records.raw_size > 10_000


def test_a_compressed_batch_is_capped_by_its_raw_size() -> None:
    """A ratio that promises too much must not make a batch that no request can take."""
    shelf = Shelf(batch_size=1024, pool=1 << 20, compressor=compressor(CompressionType.ZSTD), max_raw=4000)
    for _ in range(200):
        shelf.estimator.update("test", CompressionType.ZSTD, 0.01)
    shelf.append(0, 30, bytes(500))
    assert [batch.record_count for batch in shelf.batches()] == [7, 7, 7, 7, 2]
    assert all(61 + batch.records.raw_size <= 4000 for batch in shelf.batches())
