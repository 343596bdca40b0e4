"""A batch's bytes: written into chunks, closed, held by requests.  How a batch is filled is in test_batch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from forebay._accumulator import records
from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.closing import make_final, pieces_of, take_packed
from forebay._accumulator.pool import Buffer
from forebay._records.batch_v2 import checksum
from forebay._records.codec_packages import Chunk
from forebay._records.compression import CompressionType, Compressor, compressor
from forebay._records.ratio import CompressionRatioEstimator
from tests.unit._accumulator.shelf import Shelf, read

LZ4 = CompressionType.LZ4
INTERPRETED = str(records.__file__).endswith(".py")


def filled(count: int) -> Shelf:
    """A batch of so many chunks of 1,000 bytes, told that it compresses well."""
    estimator = CompressionRatioEstimator()
    estimator.set("test", LZ4, 0.01)
    shelf = Shelf(batch_size=1000, compressor=compressor(LZ4), estimator=estimator)
    sizes: list[int] = []
    while sizes != [1000] * count:
        shelf.append(value=b"0123456789" * 10)
        sizes = [buffer.size for buffer in shelf.batches()[0].records.buffers]
    return shelf


@pytest.mark.parametrize("count", [1, 2, 5])
def test_what_is_written_is_in_the_chunks_in_their_order(count: int) -> None:
    shelf = filled(count)
    (batch,) = shelf.batches()
    pieces = pieces_of(batch)
    assert len(pieces) == len(batch.records.buffers) == count
    assert [bytes(piece) for piece in pieces] == [
        bytes(buffer.data[0 : len(piece)]) for buffer, piece in zip(batch.records.buffers, pieces, strict=True)
    ]
    assert b"".join(bytes(piece) for piece in pieces).count(b"0123456789" * 10) == batch.record_count


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_request_holds_them_all_and_the_batch_lets_go_of_them_all(count: int) -> None:
    shelf = filled(count)
    (batch,) = shelf.batches()
    buffers: list[Buffer] = batch.records.buffers
    held: list[Any] = []
    batch.records.hold(held)
    assert held == buffers and [buffer.holds for buffer in buffers] == [2] * count
    batch.release()
    batch.release()
    assert batch.records.buffers == [] and [buffer.holds for buffer in buffers] == [1] * count
    assert shelf.pool.available() <= shelf.pool.total - sum(buffer.size for buffer in buffers)
    for buffer in held:
        buffer.release()
    assert shelf.pool.available() == shelf.pool.total


@pytest.mark.parametrize("count", [1, 2, 5])
def test_compressed_bytes_take_their_place(count: int) -> None:
    shelf = filled(count)
    (batch,) = shelf.batches()
    raw: list[Buffer] = batch.records.buffers
    make_final(batch, shelf.compressor)
    (output,) = batch.records.buffers
    assert bytes(output.data) == batch.records.payload[0] and output not in raw
    assert [buffer.holds for buffer in raw] == [0] * count


class InPieces(Compressor):
    """Makes these pieces of everything."""

    type = LZ4

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def compress(self, chunks: Sequence[Chunk], topic: str = "") -> bytes:
        return b"".join(self.pieces)

    def compress_to_pieces(self, chunks: Sequence[Chunk], topic: str = "") -> list[bytes]:
        return self.pieces

    def bound(self, size: int, chunks: int = 1) -> int:
        return size


def signed(batch: ProducerBatch, payload: bytes) -> bool:
    header = batch.header()
    return int.from_bytes(header[17:21], "big") == checksum(payload, checksum(header[21:]))


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(("size", "suits"), [(749, False), (750, True), (1000, True), (1001, False)])
def test_pieces_are_put_together_in_the_first_chunk_if_they_fill_most_of_it(count: int, size: int, suits: bool) -> None:
    shelf = filled(count)
    (batch,) = shelf.batches()
    raw: list[Buffer] = batch.records.buffers
    before = shelf.pool.available()
    packed = bytes(range(250)) * 5
    make_final(batch, InPieces(b"", packed[:300], packed[300:301], packed[301:size]))
    (output,), (payload,) = batch.records.buffers, batch.records.payload
    assert (output is raw[0]) == (suits and not INTERPRETED)
    assert batch.closed and bytes(payload) == packed[:size] and batch.records.payload_size == size
    assert signed(batch, packed[:size])
    assert [buffer.holds for buffer in raw] == [int(output is raw[0])] + [0] * (count - 1)
    assert shelf.pool.available() == before + 1000 * count - output.size
    batch.release()
    assert shelf.pool.available() == shelf.pool.total


def test_a_piece_alone_is_kept_as_it_is() -> None:
    (batch,) = filled(2).batches()
    packed = bytes(900)
    make_final(batch, InPieces(packed))
    assert batch.records.payload[0] is packed


@pytest.mark.skipif(INTERPRETED, reason="compressed bytes never stand in a chunk")
def test_a_chunk_with_compressed_bytes_is_used_again_when_nobody_sends_them_any_more() -> None:
    shelf = filled(2)
    (batch,) = shelf.batches()
    first = batch.records.buffers[0]
    make_final(batch, InPieces(b"1" * 450, b"2" * 450))
    (payload,) = batch.records.payload
    held: list[Any] = []
    batch.records.hold(held)
    batch.release()
    # The second one came back before, and the pool keeps it.
    others = [shelf.pool.allocate(1000, None, None) for _ in range(3)]
    assert first not in others and bytes(payload) == b"1" * 450 + b"2" * 450
    first.release()
    assert shelf.pool.allocate(1000, None, None) is first


def test_pieces_of_what_was_let_go_are_dropped() -> None:
    shelf = filled(2)
    (batch,) = shelf.batches()
    batch.release()
    make_final(batch, InPieces(bytes(450), bytes(450)))
    assert batch.records.buffers == [] and not batch.closed
    assert shelf.pool.available() == shelf.pool.total


def test_what_is_no_bytes_among_the_pieces_leaves_the_records_as_they_were() -> None:
    shelf = filled(2)
    (batch,) = shelf.batches()
    with pytest.raises(TypeError):
        make_final(batch, InPieces(bytes(450), 450 * "x"))  # type: ignore[arg-type]
    assert not batch.closed
    make_final(batch, shelf.compressor)
    assert read(batch, shelf.compressor).count == batch.record_count


def large(kind: CompressionType) -> Shelf:
    """A batch of 3 chunks, more than is compressed in one go, of which any codec makes most of a chunk."""
    estimator = CompressionRatioEstimator()
    estimator.set("test", kind, 0.3)
    shelf = Shelf(batch_size=128 * 1024, compressor=compressor(kind), estimator=estimator)
    rng = random.Random(5)
    for _ in range(270):
        shelf.append(value=rng.randbytes(400) + bytes(600))
    return shelf


@pytest.mark.parametrize(
    ("kind", "in_chunk"),
    [
        (CompressionType.GZIP, True),
        (CompressionType.SNAPPY, False),
        (CompressionType.LZ4, True),
        (CompressionType.ZSTD, True),
    ],
)
def test_what_is_compressed_from_several_chunks_goes_back_into_the_first(kind: CompressionType, in_chunk: bool) -> None:
    shelf = large(kind)
    (batch,) = shelf.batches()
    first, *further = batch.records.buffers
    found = read(batch, shelf.compressor)
    assert len(further) == 2 and 98304 <= batch.records.payload_size <= first.size
    assert (batch.records.buffers == [first]) == (in_chunk and not INTERPRETED)
    assert found.count == 270 and signed(batch, b"".join(bytes(piece) for piece in batch.records.payload))
    again = random.Random(5)
    assert all(record.value == again.randbytes(400) + bytes(600) for record in found.records)


def test_a_lack_of_memory_never_leaves_half_of_a_batch_overwritten() -> None:
    """One allocation after the other fails while pieces are put together: there are all records, or all pieces."""
    testcapi = pytest.importorskip("_testcapi", reason="this Python has no test modules, which fail allocations")
    outcomes: set[str] = set()
    for number in range(1000):
        shelf = filled(5)
        (batch,) = shelf.batches()
        packer = InPieces(b"1" * 450, b"2" * 450)
        failed = False
        testcapi.set_nomemory(number, number + 1)
        try:
            make_final(batch, packer)
        except MemoryError:
            failed = True
        finally:
            testcapi.remove_mem_hooks()
        if batch.closed:
            outcomes.add("pieces")
            assert b"".join(bytes(piece) for piece in batch.records.payload) == b"1" * 450 + b"2" * 450, number
        else:
            outcomes.add("records")
            assert read(batch, shelf.compressor).count == batch.record_count, number
        batch.release()
        # Interpreted, any line may fail, those between counting and noting what was counted included.
        assert INTERPRETED or shelf.pool.available() == shelf.pool.total, number
        if not failed:
            break
    assert outcomes == {"records", "pieces"} and number < 999


def test_a_batch_that_was_let_go_takes_no_compressed_bytes() -> None:
    shelf = filled(2)
    (batch,) = shelf.batches()
    batch.release()
    take_packed(batch, [b"too late"])
    assert batch.records.buffers == [] and not batch.closed
    assert shelf.pool.available() == shelf.pool.total


def test_batches_are_not_known_to_the_garbage_collector() -> None:
    collected = 1 << 14  # Py_TPFLAGS_HAVE_GC
    (batch,) = filled(1).batches()
    kinds = (*type(batch).__mro__[:2], type(batch.records))
    assert [bool(kind.__flags__ & collected) for kind in kinds] == [INTERPRETED] * 3


def test_a_lack_of_memory_leaves_no_chunk_behind() -> None:
    """One allocation after the other fails while a batch gets its second chunk."""
    testcapi = pytest.importorskip("_testcapi", reason="this Python has no test modules, which fail allocations")
    for number in range(1000):
        shelf = filled(1)
        failed = False
        testcapi.set_nomemory(number, number + 1)
        try:
            shelf.append(value=bytes(700))
        except MemoryError:
            failed = True
        finally:
            testcapi.remove_mem_hooks()
        (batch,) = shelf.batches()
        assert failed or len(batch.records.buffers) == 2
        batch.release()
        assert shelf.pool.available() == shelf.pool.total, number
        if not failed:
            break
    assert 5 < number < 999
