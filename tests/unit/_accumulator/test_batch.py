"""A batch's states, its bytes, its memory, and what leader changes mean for it."""

from __future__ import annotations

import os
import pickle

import pytest

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.closing import make_final
from forebay._delivery.future import RecordFuture
from forebay._records.compression import CompressionType, compressor
from forebay.errors import IllegalStateError, KafkaError, NotLeaderOrFollowerError
from forebay.model import RecordMetadata
from tests.unit._accumulator.shelf import Shelf, quiet, read

CODECS = [kind for kind in CompressionType if kind is not CompressionType.NONE]
Calls = list[tuple[RecordMetadata, BaseException | None]]


def batch_of(count: int = 1, *, value: bytes = b"0123456789") -> tuple[ProducerBatch, RecordFuture, Calls]:
    shelf = Shelf(batch_size=512)
    calls: Calls = []
    future = shelf.append(1, count, value, None, callback=lambda report: calls.append((report.metadata, report.error)))
    (batch,) = shelf.batches(1)
    return batch, future, calls


def test_abort() -> None:
    """E testBatchAbort: one callback with the error; later outcomes change nothing."""
    batch, future, calls = batch_of()
    error = KafkaError("aborted")
    batch.abort(error, quiet)
    assert future.done() and batch.done
    ((metadata, told),) = calls
    assert repr(told) == repr(error)
    assert metadata == RecordMetadata("test", 1, -1, -1, -1, -1)
    assert not batch.complete(500, -1, quiet)
    assert not batch.fail(KafkaError(), None, quiet)
    assert len(calls) == 1
    assert repr(future.exception(0)) == repr(error)
    with pytest.raises(KafkaError, match="aborted"):
        future.result(0)


def test_abort_twice() -> None:
    """E testBatchCannotAbortTwice."""
    batch, _, calls = batch_of()
    batch.abort(KafkaError("first"), quiet)
    with pytest.raises(IllegalStateError, match="test-1"):
        batch.abort(KafkaError("second"), quiet)
    assert len(calls) == 1


def test_complete_twice() -> None:
    """E testBatchCannotCompleteTwice: callback with metadata; offset 500, timestamp 10."""
    batch, future, calls = batch_of()
    assert batch.complete(500, 10, quiet)
    with pytest.raises(IllegalStateError, match="acknowledged"):
        batch.complete(1000, 20, quiet)
    with pytest.raises(IllegalStateError, match="acknowledged"):
        batch.fail(KafkaError(), None, quiet)
    ((metadata, error),) = calls
    assert error is None and metadata.offset == 500
    assert (future.result(0).offset, future.result(0).timestamp) == (500, 10)


def test_failed_once() -> None:
    batch, future, calls = batch_of(2)
    error = KafkaError("refused")
    assert batch.fail(error, None, quiet)
    assert not batch.fail(KafkaError("again"), None, quiet)
    assert not batch.complete(0, -1, quiet)
    assert [repr(told) for _, told in calls] == [repr(error)] * 2
    assert repr(future.exception(0)) == repr(error)


def test_errors_of_single_records() -> None:
    """E testCompleteExceptionallyWithNullRecordErrors: without them (None) all records get the batch's error."""
    batch, _, calls = batch_of(3)
    rest, single = KafkaError("another record of the batch"), KafkaError("this one")
    batch.fail(rest, {1: single}, quiet)
    assert [repr(error) for _, error in calls] == [repr(rest), repr(single), repr(rest)]


def test_nothing_is_appended_once_closed() -> None:
    """E testShouldNotAttemptAppendOnceRecordsBuilderIsClosedForAppends: the next record begins another batch."""
    shelf = Shelf(batch_size=512)
    shelf.append()
    (first,) = shelf.batches()
    assert not first.is_full()
    first.close_for_appends()
    assert first.is_full()
    shelf.append()
    assert [batch.record_count for batch in shelf.batches()] == [1, 1]


def test_not_expired_before_its_time() -> None:
    """E testBatchExpirationAfterReenqueue: the delivery timeout counts from creation, also after a retry."""
    shelf = Shelf(batch_size=512)
    shelf.append()
    (batch,) = shelf.drain(0)
    shelf.schedule.reenqueue(batch, shelf.now, None)
    assert not batch.reached_delivery_timeout(10, batch.created - 2)
    assert not batch.reached_delivery_timeout(10, batch.created + 9.5)
    assert batch.reached_delivery_timeout(10, batch.created + 10)


def test_leader_changes_across_retries() -> None:
    """E testWithLeaderChangesAcrossRetries: only a newer epoch is a change, and it is one for that attempt only."""
    batch, _, _ = batch_of()
    assert batch.leader_epoch == -1 and not batch.leader_changed_for_retry()
    assert not batch.update_leader_epoch(-1)
    assert batch.attempts_when_leader_last_changed == -1
    steps: list[tuple[int, int, bool, int]] = [
        # attempts so far, epoch heard of, changed for this retry?, attempts at the last change
        (0, 100, False, 0),
        (1, 101, True, 1),
        (1, 101, True, 1),
        (2, 101, False, 1),
        (2, 100, False, 1),
        (2, -1, False, 1),
        (3, 102, True, 3),
    ]
    for attempts, epoch, changed, at in steps:
        batch.attempts = attempts
        batch.update_leader_epoch(epoch)
        assert (batch.leader_changed_for_retry(), batch.attempts_when_leader_last_changed) == (changed, at)
    assert batch.leader_epoch == 102


def test_bytes_on_the_wire() -> None:
    shelf = Shelf(batch_size=512)
    headers = [("h", b"1"), ("none", None)]
    for timestamp, key, value in [(1000, b"k", b"v"), (1005, None, None), (999, b"", b"")]:
        shelf.append(0, 1, value, key, timestamp=timestamp, headers=headers)
    (batch,) = shelf.batches()
    estimated = batch.estimated_size()
    batch.set_producer_state(13131, 1, 7, True)
    found = read(batch)
    assert [(record.timestamp, record.key, record.value) for record in found.records] == [
        (1000, b"k", b"v"),
        (1005, None, None),
        (999, b"", b""),
    ]
    assert {record.headers for record in found.records} == {tuple(headers)}
    assert (found.base_timestamp, found.max_timestamp) == (1000, 1005)
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (13131, 1, 7)
    assert found.is_transactional
    assert found.size == estimated == batch.estimated_size()


@pytest.mark.parametrize("kind", CODECS)
def test_compressed(kind: CompressionType) -> None:
    codec = compressor(kind, None)
    shelf = Shelf(batch_size=4096, compressor=codec)
    for number in range(100):
        shelf.append(0, 1, b"value" * 3, b"%d" % number, headers=[("h", b"v")])
    (batch,) = shelf.batches()
    raw = batch.records.raw_size
    found = read(batch, codec)
    assert found.codec == kind
    assert [record.key for record in found.records] == [b"%d" % number for number in range(100)]
    assert all(record.headers == (("h", b"v"),) for record in found.records)
    assert batch.records.observed_ratio() == pytest.approx(found.size / (61 + raw))
    assert batch.estimated_size() == found.size < 61 + raw


def test_closing_lets_the_raw_memory_go() -> None:
    codec = compressor(CompressionType.ZSTD, None)
    shelf = Shelf(batch_size=4096, pool=8192, compressor=codec)
    shelf.append(0, 50, b"value" * 10)
    (batch,) = shelf.batches()
    assert shelf.pool.available() == 4096
    make_final(batch, codec)
    assert shelf.pool.available() == 8192 - batch.records.payload_size
    payload = bytes(batch.records.payload[0])
    make_final(batch, codec)  # a second time changes nothing
    assert bytes(batch.records.payload[0]) == payload
    batch.release()
    assert shelf.pool.available() == 8192


def test_records_are_never_touched_again() -> None:
    """A retry is byte-identical; an epoch bump changes the header only."""
    batch, _, _ = batch_of(3)
    batch.set_producer_state(1, 0, 5, False)
    make_final(batch, None)
    first, payload = bytes(batch.header()), bytes(batch.records.payload[0])
    assert bytes(batch.header()) == first
    batch.set_producer_state(1, 1, 0, False)
    assert bytes(batch.header()) != first
    assert bytes(batch.records.payload[0]) == payload
    assert read(batch).producer_epoch == 1


def test_a_request_holds_the_memory() -> None:
    """O1: what a batch lets go stays until the request that sends it is through."""
    shelf = Shelf(batch_size=512, pool=512)
    shelf.append(value=bytes(300))
    (batch,) = shelf.drain(0)
    held: list[object] = []
    batch.records.hold(held)
    batch.release()
    batch.release()  # once is enough
    assert shelf.pool.available() == 0
    (buffer,) = held
    buffer.release()  # type: ignore[attr-defined]
    assert shelf.pool.available() == 512


@pytest.mark.parametrize("kind", [CompressionType.NONE, CompressionType.LZ4])
def test_a_batch_with_its_outcome_keeps_no_bytes(kind: CompressionType) -> None:
    """A flush holds its batches until the last of them is done: their bytes must not wait for that."""
    codec = None if kind is CompressionType.NONE else compressor(kind, None)
    shelf = Shelf(batch_size=512, compressor=codec)
    shelf.append(1, 3, b"0123456789", None)
    (batch,) = shelf.batches(1)
    make_final(batch, codec)
    assert batch.records.payload
    batch.complete(0, -1, quiet)
    batch.release()
    assert batch.records.payload == []


def test_what_does_not_shrink_is_still_taken() -> None:
    codec = compressor(CompressionType.GZIP, None)
    shelf = Shelf(batch_size=1024, compressor=codec)
    shelf.append(0, 1, os.urandom(900))
    (batch,) = shelf.batches()
    assert read(batch, codec).records[0].value is not None
    assert batch.records.observed_ratio() > 0.9


def test_stamp() -> None:
    batch, _, _ = batch_of()
    assert not batch.has_sequence()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    batch.set_producer_state(9, 2, 0, False)
    assert batch.has_sequence()


def test_how_it_prints() -> None:
    batch, _, _ = batch_of(2)
    assert repr(batch) == "<ProducerBatch test-1: 2 records, 95 bytes, open, attempt 0>"
    batch.close_for_appends()
    assert ", full, " in repr(batch)
    make_final(batch, None)
    assert ", closed, " in repr(batch)
    batch.attempts = 1
    batch.fail(NotLeaderOrFollowerError(), None, quiet)
    assert ", failed, attempt 1>" in repr(batch)


def test_it_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(batch_of()[0])
