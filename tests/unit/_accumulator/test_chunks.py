"""What a batch's records are written into; how chunks are filled is in test_batch and test_accumulator."""

from __future__ import annotations

from typing import Any

import pytest

from forebay._accumulator import chunks
from forebay._accumulator.pool import Buffer
from forebay._records.compression import CompressionType, compressor
from forebay._records.ratio import CompressionRatioEstimator
from tests.unit._accumulator.shelf import Shelf

LZ4 = CompressionType.LZ4


def filled(count: int) -> Shelf:
    """A batch of so many chunks of 1,000 bytes, told that it compresses well."""
    estimator = CompressionRatioEstimator()
    estimator.set("test", LZ4, 0.01)
    shelf = Shelf(batch_size=1000, compressor=compressor(LZ4), estimator=estimator)
    while not shelf.batches() or len(shelf.batches()[0].buffers) < count:
        shelf.append(value=b"0123456789" * 10)
    return shelf


@pytest.mark.parametrize("count", [1, 2, 5])
def test_what_is_written_is_in_the_chunks_in_their_order(count: int) -> None:
    shelf = filled(count)
    (batch,) = shelf.batches()
    pieces = batch.pieces()
    assert len(pieces) == len(batch.buffers) == count
    assert [bytes(piece) for piece in pieces] == [
        bytes(buffer.view(0, len(piece))) for buffer, piece in zip(batch.buffers, pieces, strict=True)
    ]
    assert b"".join(bytes(piece) for piece in pieces).count(b"0123456789" * 10) == batch.record_count


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_request_holds_them_all_and_the_batch_lets_go_of_them_all(count: int) -> None:
    shelf = filled(count)
    (batch,) = shelf.batches()
    buffers: list[Buffer] = batch.buffers
    held: list[Any] = []
    batch.hold(held)
    assert held == buffers and [buffer.holds for buffer in buffers] == [2] * count
    batch.release()
    batch.release()
    assert batch.buffers == [] and [buffer.holds for buffer in buffers] == [1] * count
    assert shelf.pool.available() <= shelf.pool.total - sum(buffer.size for buffer in buffers)
    for buffer in held:
        buffer.release()
    assert shelf.pool.available() == shelf.pool.total


@pytest.mark.parametrize("count", [1, 2, 5])
def test_compressed_bytes_take_their_place(count: int) -> None:
    shelf = filled(count)
    (batch,) = shelf.batches()
    raw: list[Buffer] = batch.buffers
    batch.close(shelf.compressor)
    (output,) = batch.buffers
    assert bytes(output.data) == batch.payload[0] and output not in raw
    assert [buffer.holds for buffer in raw] == [0] * count


def test_a_batch_that_was_let_go_takes_no_compressed_bytes() -> None:
    shelf = filled(2)
    (batch,) = shelf.batches()
    batch.release()
    batch.close_with(b"too late")
    assert batch.buffers == [] and not batch.closed
    assert shelf.pool.available() == shelf.pool.total


def test_batches_are_not_known_to_the_garbage_collector() -> None:
    collected = 1 << 14  # Py_TPFLAGS_HAVE_GC
    (batch,) = filled(1).batches()
    interpreted = str(chunks.__file__).endswith(".py")
    assert [bool(kind.__flags__ & collected) for kind in type(batch).__mro__[:3]] == [interpreted] * 3


def test_a_lack_of_memory_leaves_no_chunk_behind() -> None:
    """One allocation after the other fails while a batch gets its second chunk."""
    testcapi = pytest.importorskip("_testcapi", reason="this Python has no test modules, which fail allocations")
    for number in range(1000):
        shelf = filled(1)
        shelf.append(value=bytes(700))
        failed = False
        testcapi.set_nomemory(number, number + 1)
        try:
            shelf.append(value=bytes(700))
        except MemoryError:
            failed = True
        finally:
            testcapi.remove_mem_hooks()
        for batch in shelf.batches():
            batch.release()
        assert shelf.pool.available() == shelf.pool.total, number
        if not failed:
            break
    assert 5 < number < 999
