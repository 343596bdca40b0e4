"""Closing batches: their bytes become final once, and the estimate learns from each."""

from __future__ import annotations

import ctypes
import os
import random
import re
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.closing import BatchCloser, make_final
from forebay._accumulator.helpers import CompressionHelpers
from forebay._accumulator.states import CLOSING, FULL, LEFT, OPEN
from forebay._delivery.sender_lock import IN_HAND, may_wait
from forebay._records.batch_v2 import checksum
from forebay._records.compression import CompressionType, Lz4Compressor, compressor
from forebay._records.ratio import CompressionRatioEstimator
from forebay.producer._columns import BatchDelivery, append_columns, sink_columns
from tests.fakes.world import World
from tests.unit._accumulator.shelf import RECORD, Shelf, quiet, read

LZ4 = CompressionType.LZ4


def sealed(shelf: Shelf) -> None:
    shelf.accumulator.seal()
    shelf.accumulator.unseal()


def test_without_compression_nothing_is_learned() -> None:
    shelf = Shelf()
    shelf.append(0, 3)
    sealed(shelf)
    (batch,) = shelf.drain(0)
    shelf.accumulator.closer.close_drained([batch])
    assert batch.closed and batch.records.observed_ratio() == 1.0
    assert (shelf.accumulator.closer.codec_id, BatchCloser().codec_id) == (0, 0)


@pytest.mark.parametrize("count", [1, 3])
def test_each_batch_is_compressed_once_and_counts_for_the_estimate(count: int) -> None:
    codec = compressor(LZ4)
    shelf = Shelf(compressor=codec, batch_size=4096)
    for partition in range(count):
        shelf.append(partition, 30, b"0123456789" * 10)
    batches = [batch for node in (0, 1) for batch in shelf.drain(node)]
    shelf.accumulator.closer.close_drained(batches)
    payloads = [batch.records.payload[0] for batch in batches]
    shelf.accumulator.closer.close_drained(batches)
    assert len(batches) == count and all(batch.closed for batch in batches)
    assert [batch.records.payload[0] for batch in batches] == payloads
    assert shelf.estimator.estimation("test", LZ4) == pytest.approx(1 - 0.005 * count)
    assert all(read(batch, codec).count == 30 for batch in batches)


def nearly_full() -> Shelf:
    """One batch, which the next record does not fit into any more."""
    shelf = Shelf(batch_size=1000, compressor=compressor(LZ4))
    value = random.Random(1).randbytes(300)
    shelf.append(0, 1, value)
    while shelf.batches()[0].estimated_size() + 330 <= 1000:
        shelf.append(0, 1, value)
    return shelf


def test_a_lack_of_memory_when_a_batch_is_full_leaves_it_to_the_sender() -> None:
    """One allocation after the other fails in the send that closes it: it goes out, a second late at most."""
    testcapi = pytest.importorskip("_testcapi", reason="this Python has no test modules, which fail allocations")
    value = random.Random(2).randbytes(300)
    for number in range(1000):
        shelf, failed = nearly_full(), False
        (batch,) = shelf.batches()
        testcapi.set_nomemory(number, number + 1)
        try:
            shelf.accumulator.appender.append_bytes(shelf.topic, 0, value, now=shelf.now)
        except MemoryError:
            failed = True
        finally:
            testcapi.remove_mem_hooks()
        shelf.ready(send_all=True)
        shelf.clock.advance(1001)
        shelf.ready(send_all=True)
        assert batch in shelf.drain(0), number
        if not failed and number > 20:
            break
    assert number < 999


class Copying:
    """A codec that copies its input, and notes what the pool has left meanwhile."""

    type = LZ4

    def __init__(self, copies_all: bool = False) -> None:
        self.codec = compressor(LZ4)
        self.copies_all = copies_all
        self.left: list[int] = []
        self.many = 0
        self.shelf: Any = None

    def copied(self, size: int, chunks: int) -> int:
        return size if chunks > 1 else 0

    def copied_by_many(self, sizes: Any) -> bool:
        return self.copies_all

    def compress_to_pieces(self, chunks: Any, topic: str = "") -> list[bytes]:
        self.left.append(self.shelf.pool.available())
        return [self.codec.compress(chunks)]

    def compress_many(self, batches: Any, topics: Any = ()) -> list[bytes]:
        self.left.append(self.shelf.pool.available())
        self.many += len(batches)
        return self.codec.compress_many(batches)

    def bound(self, size: int, chunks: int = 1) -> int:
        return self.codec.bound(size, chunks)


@pytest.mark.parametrize("copies_all", [False, True])
def test_the_compressor_s_copies_are_counted_while_they_last(copies_all: bool) -> None:
    codec = Copying(copies_all)
    estimator = CompressionRatioEstimator()
    estimator.set("test", LZ4, 0.1)
    codec.shelf = shelf = Shelf(compressor=codec, batch_size=4096, estimator=estimator)  # type: ignore[arg-type]
    for partition, count in ((0, 80), (1, 3), (2, 3)):
        shelf.append(partition, count, b"0123456789" * 10)
    batches = [batch for node in (0, 1) for batch in shelf.drain(node)]
    large, *small = batches
    assert [len(batch.records.buffers) for batch in batches] == [3, 1, 1]
    before, raw = shelf.pool.available(), large.records.raw_size
    chunks = sum(buffer.size for batch in batches for buffer in batch.records.buffers)
    shelf.accumulator.closer.close_drained(batches)
    # The large one is closed alone, the small ones in one call.
    after_the_large_one = before + 3 * 4096 - large.records.payload_size
    together = sum(batch.records.raw_size for batch in small) if copies_all else 0
    assert codec.left == [before - raw, after_the_large_one - together] and codec.many == 2
    assert shelf.pool.available() == before + chunks - sum(batch.records.payload_size for batch in batches)
    assert all(read(batch, codec.codec).count == batch.record_count for batch in batches)


def test_what_was_filled_first_is_compressed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[bytes] = []

    def compress(self: Lz4Compressor, chunks: list[bytes], topic: str = "") -> list[bytes]:
        pieces.append(b"".join(chunks))
        return plain(self, chunks)

    plain = Lz4Compressor.compress_to_pieces
    monkeypatch.setattr(Lz4Compressor, "compress_to_pieces", compress)
    # Some wait for a helper, and none takes them, until the caller has to do it.
    world = World(topics={"t": 1}, batch_size=500, compression_type="lz4", linger_ms=1000)
    monkeypatch.setattr(CompressionHelpers, "accept", lambda helpers, queue, size: len(world.queue("t").batches) < 6)
    monkeypatch.setattr(CompressionHelpers, "unit", lambda helpers, queue: [queue])
    world.producer.send_batch("t", [b"%06d" % number for number in range(300)])
    assert len(pieces) > 5
    assert pieces == sorted(pieces, key=lambda piece: re.search(rb"[0-9]{6}", piece)[0])  # type: ignore[index]


def test_a_table_s_rows_are_signed_by_who_wrote_them_and_by_the_sender_alike() -> None:
    world = World(topics={"t": 1}, linger_ms=1000)
    table = pa.RecordBatch.from_pydict({"value": pa.array([b"%d" % number for number in range(500)])})
    append_columns(world.producer, sink_columns(table, "t"), BatchDelivery())
    world.producer.send("t", b"behind them")
    (batch,) = world.queue("t").batches
    make_final(batch, None)
    header = batch.header()
    payload = bytes(batch.records.payload[0])
    assert int.from_bytes(header[17:21], "big") == checksum(payload, checksum(header[21:]))
    assert payload.count(b"behind them") == 1


def signed_before(batch: ProducerBatch) -> bool:
    """Whether the records' checksum had been taken before now: a byte that changes now is none of it."""
    make_final(batch, None)
    before = bytes(batch.records.payload[0])
    ctypes.memset(pa.py_buffer(batch.records.payload[0]).address + 10, before[10] ^ 1, 1)
    header = batch.header()
    taken = {checksum(payload, checksum(header[21:])): payload for payload in (before, bytes(batch.records.payload[0]))}
    return taken[int.from_bytes(header[17:21], "big")] is before


@pytest.mark.parametrize(
    ("batch_size", "size", "ahead"), [(1000, 80, True), (100 << 10, 999, True), (1 << 20, 999, False)]
)
def test_who_fills_a_batch_takes_its_checksum(batch_size: int, size: int, ahead: bool) -> None:
    """The larger it is, the less of it the processor's cache still has; nor is one taken of what is still open."""
    shelf = Shelf(batch_size=batch_size)
    while len(shelf.queue(0).batches) < 2:
        shelf.append(0, 1, b"v" * size)
    full, begun = shelf.queue(0).batches
    assert (full.life, begun.life) == (FULL, OPEN)
    assert [signed_before(full), signed_before(begun)] == [ahead, False]


@pytest.mark.parametrize("behind", [0, 3])
@pytest.mark.parametrize(("size", "ahead"), [((32 << 10) - 1, False), (32 << 10, True), (900_000, True)])
def test_a_large_first_record_is_signed_as_it_is_copied(size: int, ahead: bool, behind: int) -> None:
    shelf = Shelf(batch_size=1 << 20)
    shelf.append(0, 1, b"v" * size)
    if behind:
        shelf.append(0, behind)
    (batch,) = shelf.queue(0).batches
    assert batch.life == OPEN and batch.record_count == 1 + behind
    make_final(batch, None)
    payload, header = bytes(batch.records.payload[0]), batch.header()
    assert int.from_bytes(header[17:21], "big") == checksum(payload, checksum(header[21:]))
    assert payload.count(b"v" * size) == 1
    again = Shelf(batch_size=1 << 20)
    again.append(0, 1, b"v" * size)
    assert signed_before(again.queue(0).batches[0]) == ahead


def test_a_batch_that_is_full_to_the_byte_is_signed_by_who_filled_it() -> None:
    shelf = Shelf(batch_size=61 + 4 * RECORD)
    shelf.append(0, 4)
    (batch,) = shelf.queue(0).batches
    assert batch.life != OPEN and signed_before(batch)


def test_what_is_compressed_is_signed_as_it_is_sent() -> None:
    codec = compressor(LZ4)
    shelf = Shelf(batch_size=1000, compressor=codec)
    while len(shelf.queue(0).batches) < 2:
        shelf.append(0, 1, os.urandom(90))
    batch = shelf.queue(0).batches[0]
    assert batch.closed and read(batch, codec).count == batch.record_count


def test_the_codec_s_failure_is_the_caller_s_to_handle() -> None:
    class Broken:
        type = LZ4

        def compress_to_pieces(self, chunks: object, topic: str = "") -> list[bytes]:
            raise MemoryError("none left")

    shelf = Shelf(compressor=compressor(LZ4))
    shelf.append()
    (batch,) = shelf.drain(0)
    closer = BatchCloser(Broken(), shelf.estimator)
    with pytest.raises(MemoryError):
        closer.close_batch(batch)
    assert not batch.closed
    shelf.accumulator.closer.close_batch(batch)
    assert batch.closed


class Interrupted:
    """A codec that Ctrl-C meets."""

    type = LZ4

    def compress_to_pieces(self, chunks: object, topic: str = "") -> list[bytes]:
        raise KeyboardInterrupt


class Line:
    """In place of helpers: takes so many queues and does nothing with them, then Ctrl-C comes."""

    def __init__(self, takes: int) -> None:
        self.left = takes

    def accept(self, queue: object, size: int) -> bool:
        assert size > 0
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return True


def until_interrupted(act: Callable[[], Any]) -> None:
    try:
        for _ in range(1000):
            act()
    except KeyboardInterrupt:
        return
    pytest.fail("no interrupt came")


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_what_is_not_handed_to_a_helper_because_of_ctrl_c_is_the_sender_s(taken: int) -> None:
    shelf = Shelf(compressor=compressor(LZ4), batch_size=256)
    closer = shelf.accumulator.closer
    woken: list[bool] = []
    closer.wake = lambda: woken.append(True)
    closer.helpers = Line(taken)
    closer.helped_threads.add(threading.get_ident())
    until_interrupted(lambda: shelf.append(0, 1, os.urandom(50)))
    assert [batch.closing for batch in shelf.batches()] == [False] * (taken + 1)
    assert shelf.ready().nodes == [0] and len(woken) == 1
    (batch,) = shelf.drain(0)
    closer.close_drained([batch])
    assert batch.closed


class FullLine:
    """In place of helpers: busy when asked the second time."""

    def __init__(self) -> None:
        self.answers = [True, False, True]

    def accept(self, queue: object, size: int) -> bool:
        return self.answers.pop(0)

    def unit(self, queue: object) -> list[object]:
        return [queue]


def test_a_caller_leaves_helpers_what_is_theirs() -> None:
    """Large batches, each a unit by itself: the caller does one, and then a helper can have the other."""
    large = os.urandom(300_000)
    shelf = Shelf(compressor=compressor(LZ4), batch_size=700_000)
    closer = shelf.accumulator.closer
    closer.helpers = line = FullLine()
    closer.helped_threads.add(threading.get_ident())
    while len(line.answers) > 0:
        shelf.append(0, 1, large)
    first, second, *_ = shelf.batches()
    assert (first.closed, first.closing, second.closed, second.closing) == (True, False, False, True)
    closer.compress_queues([shelf.queue()])
    assert (second.closed, second.closing) == (True, False)


def test_ctrl_c_in_one_batch_leaves_those_behind_it_to_the_sender() -> None:
    shelf = Shelf(compressor=Interrupted(), batch_size=256)  # type: ignore[arg-type]
    closer = shelf.accumulator.closer
    closer.helpers = Line(3)
    closer.helped_threads.add(threading.get_ident())
    while len(shelf.batches()) < 4:
        shelf.append(0, 1, os.urandom(50))
    assert [batch.closing for batch in shelf.batches()] == [True] * 3 + [False]
    until_interrupted(lambda: closer.compress_queues([shelf.queue()]))
    assert not any(batch.closing for batch in shelf.batches())


def test_what_nobody_begins_to_compress_is_the_sender_s_after_a_second() -> None:
    """The thread that was to do it may have ended."""
    shelf = Shelf(compressor=compressor(LZ4), batch_size=256)
    closer = shelf.accumulator.closer
    closer.helpers = Line(1000)
    closer.helped_threads.add(threading.get_ident())
    while len(shelf.batches()) < 3:
        shelf.append(0, 1, os.urandom(50))
    first, second, _ = shelf.batches()
    for passed, nodes, kept in ((0, [], True), (999, [], True), (1, [0], False)):
        shelf.clock.advance(passed)
        found = shelf.ready()
        assert (found.nodes, first.closing, second.closing) == (nodes, kept, True)
    assert shelf.drain(0) == [first]
    # The next one has a second of its own.
    for passed, nodes in ((0, []), (999, []), (1, [0])):
        shelf.clock.advance(passed)
        assert shelf.ready().nodes == nodes


def test_what_somebody_compresses_is_waited_for() -> None:
    shelf = Shelf(compressor=compressor(LZ4), batch_size=256)
    shelf.append(0, 1, os.urandom(50))
    (batch,) = shelf.batches()
    batch.close_for_appends()
    for life in (LEFT, CLOSING):
        batch.become(life)
    for _ in range(3):
        shelf.clock.advance(10_000)
        assert shelf.ready().nodes == []


class Handled:
    """A codec that a signal handler comes amid."""

    type = LZ4

    def __init__(self, handler: Callable[[], Any]) -> None:
        self.codec = compressor(LZ4)
        self.handler = handler

    def compress_to_pieces(self, chunks: Any, topic: str = "") -> list[bytes]:
        packed = self.codec.compress_to_pieces(chunks, topic)
        handler, self.handler = self.handler, lambda: None
        handler()
        return packed

    def copied(self, size: int, chunks: int) -> int:
        return 0


def sent(shelf: Shelf) -> list[ProducerBatch]:
    """What the sender sends now."""
    shelf.ready()
    batches = shelf.drain(0)
    shelf.accumulator.closer.close_drained(batches)
    return batches


@pytest.mark.parametrize("completed", [False, True])
def test_a_handler_that_waits_leaves_what_is_being_compressed_to_the_sender(completed: bool) -> None:
    """Else the sender would wait for the interrupted thread, and that in its handler for the sender."""
    seen: list[Any] = []
    before: list[Any] = []

    def handler() -> None:
        before.append(sent(shelf))
        assert may_wait()
        seen.extend(sent(shelf))
        if completed:
            for batch in seen:
                batch.complete(0, -1, quiet)
                shelf.accumulator.deallocate(batch)

    codec: Any = Handled(handler)
    shelf = Shelf(compressor=codec, batch_size=256)
    value = os.urandom(50)
    while not seen:
        shelf.append(0, 1, value)
    (batch,) = seen
    assert before == [[]] and batch.closed and not batch.closing
    if not completed:
        assert [record.value for record in read(batch, codec.codec).records] == [value] * batch.record_count
        shelf.accumulator.deallocate(batch)
    # The interrupted call made its bytes for nothing, and all memory is back but the next batch's.
    for rest in [*sent(shelf)]:
        rest.complete(1, -1, quiet)
        shelf.accumulator.deallocate(rest)
    assert shelf.pool.available() == shelf.pool.total
    assert not shelf.accumulator.has_incomplete()
    assert IN_HAND == []


class InterruptedHelpers:
    """Helpers of a closer, where a signal handler comes before a batch is handed to them."""

    def __init__(self, handler: Callable[[], None]) -> None:
        self.handler = handler

    def accept(self, queue: Any, size: int) -> bool:
        handler, self.handler = self.handler, lambda: None
        handler()
        return False

    def unit(self, queue: Any) -> list[Any]:
        return [queue]


def test_a_handler_that_waits_leaves_what_no_helper_has_yet_to_the_sender() -> None:
    seen: list[Any] = []
    before: list[Any] = []

    def handler() -> None:
        before.append(sent(shelf))
        assert may_wait()
        seen.extend(sent(shelf))

    shelf = Shelf(compressor=compressor(LZ4), batch_size=256)
    closer = shelf.accumulator.closer
    closer.helpers = InterruptedHelpers(handler)
    value = os.urandom(50)
    with closer.helped():
        while not seen:
            assert shelf.append(0, 1, value) is not None
    (batch,) = seen
    assert before == [[]] and batch.closed
    assert [record.value for record in read(batch, LZ4).records] == [value] * batch.record_count
    assert IN_HAND == []
