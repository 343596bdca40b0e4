"""Splitting: a batch that the broker refused as too large is sent as several smaller ones (KIP-126).

The batch's bytes are read back, and its records are written again, with their timestamps and headers, into batches that
take its place at the head of the queue.  They keep its age, so delivery.timeout.ms still counts from its first record.
Their attempts begin at 0, because a split is no retry.

The target size shrinks: it is ``batch.size`` if that is below the size that was refused, else half of the refused size,
and never below the largest record.  So splitting ends also if batch.size is more than the broker takes (the Java client
3.x splits such a batch into itself until it expires).  A batch of a single record that is refused fails.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._accumulator.batch import new_batch
from cython.cimports.forebay._accumulator.records import new_records
from cython.cimports.forebay._accumulator.states import SPLIT
from cython.cimports.forebay._delivery.split import split_result
from cython.cimports.forebay._records.batch_v2 import encode_headers, record_body_size, record_size
from cython.cimports.forebay._records.layout import BATCH_OVERHEAD
from cython.cimports.forebay._runtime.primitives import MAX_INT32, RecordView, optional_size, record_view, view_of

from forebay._accumulator.accumulator import RecordAccumulator
from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.pool import Buffer, BufferPool
from forebay._accumulator.records import RecordsBuilder
from forebay._records.compression import CompressionType
from forebay._records.decoded import Record
from forebay._records.decompression import decompress
from forebay._records.reader import read_records
from forebay.errors import RecordTooLargeError
from forebay.model._gate import Gate


def split_and_reenqueue(accumulator: RecordAccumulator, batch: ProducerBatch, gate: Gate | None) -> int:
    """Puts the parts of ``batch`` in its place; how many they are.  Sender's thread.

    Args:
        batch: closed, drained, not in flight any more, without an outcome, of more than one record.
        gate: divides the batch's sequences among the parts.

    Raises:
        KafkaError, MemoryError: its records could not be read back or written.  Nothing has changed then.
    """
    children: list[Any] = split(batch, split_size(batch, accumulator.appender.batch_size))
    child: ProducerBatch
    accumulator.closer.forget_ratio(batch)
    if gate is not None:
        gate.on_split(batch, children)
    supersede(batch, children)
    accumulator.incomplete_batches.replace(batch, children)
    # The last one first: each goes to the head of the queue.
    at: cython.Py_ssize_t
    for at in range(len(children) - 1, -1, -1):
        child = children[at]
        accumulator.schedule.put_back(child, gate)
    accumulator.deallocate(batch)
    return len(children)


@cython.cfunc
def supersede(batch: ProducerBatch, children: list[Any]) -> cython.void:
    parts: list[Any] = [child.result for child in children]
    batch.final_state = SPLIT
    split_result(batch.result, parts)


@cython.ccall
def split_size(batch: ProducerBatch, batch_size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Most bytes of header and uncompressed records of a part; small enough for two parts at least."""
    refused: cython.Py_ssize_t = batch.estimated_size()
    size: cython.Py_ssize_t = batch_size if batch_size < refused else refused // 2
    return max(min(size, BATCH_OVERHEAD + batch.records.raw_size - 1), BATCH_OVERHEAD + batch.records.max_record_size)


@cython.ccall
def split(batch: ProducerBatch, size: cython.Py_ssize_t) -> list[Any]:
    """Batches of at most ``size`` bytes (one record at least) with the records of ``batch``, in order.

    Their memory counts in the pool of ``batch``, which may be overdrawn until ``batch`` is released.

    Raises:
        KafkaError, MemoryError: see ``split_and_reenqueue``.
    """
    children: list[Any] = []
    child: ProducerBatch
    records: tuple[Record, ...] = records_of(batch)
    begin: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t
    try:
        while begin < len(records):
            end = begin
            raw: cython.Py_ssize_t = 0
            while end < len(records):
                more: cython.Py_ssize_t = size_of(records[end], records[begin].timestamp, end - begin)
                if end > begin and BATCH_OVERHEAD + raw + more > size:
                    break
                raw += more
                end += 1
            child = part_of(batch, begin, raw)
            children.append(child)
            fill(child, records[begin:end], batch)
            begin = end
    except BaseException:
        for child in children:
            child.release()
        raise
    return children


def records_of(batch: ProducerBatch) -> tuple[Record, ...]:
    """The records of a closed batch, read back.

    Raises:
        CorruptRecordError, InvalidRecordError: its bytes are not what was written.
    """
    records: RecordsBuilder = batch.records
    section = b"".join([bytes(piece) for piece in records.payload])
    if records.compressed:
        section = decompress(CompressionType(records.codec_id), section, records.raw_size)
    return read_records(section, count=batch.record_count, base_timestamp=records.base_timestamp)


@cython.cfunc
def size_of(record: Any, base_timestamp: cython.longlong, offset: cython.int) -> cython.Py_ssize_t:
    timestamp: cython.longlong = record.timestamp
    section: bytes = encode_headers(record.headers)
    return record_size(
        record_body_size(
            timestamp - base_timestamp, offset, optional_size(record.key), optional_size(record.value), len(section)
        )
    )


@cython.cfunc
def part_of(batch: ProducerBatch, begin: cython.Py_ssize_t, raw: cython.Py_ssize_t) -> ProducerBatch:
    first: Buffer = batch.records.buffer_at(0)
    pool: BufferPool = first.pool
    pool.charge(first.owner, raw)
    chunk: Buffer = pool.create(raw, first.owner)
    records: RecordsBuilder = new_records(chunk, MAX_INT32, batch.records.codec_id, 1.0, 0)
    at: cython.int = cython.cast(cython.int, batch.result.first + begin)
    child: ProducerBatch = new_batch(batch.queue, records, batch.created, at)
    child.drain_number = batch.drain_number
    child.last_node = batch.last_node
    child.last_error = batch.last_error
    return child


@cython.cfunc
def fill(child: ProducerBatch, records: Any, batch: ProducerBatch) -> cython.void:
    for record in records:
        write(child, record)
    child.close_for_appends()
    # Callbacks move with their records.
    child.account.charge(batch.account.of_records() * len(records) // batch.record_count)


@cython.ccall
def write(child: ProducerBatch, record: Any) -> cython.void:
    """Appends a record that was read back.

    Raises:
        RecordTooLargeError: it has no room, because the estimated size of a part may be more than an int32 holds.
    """
    key: bytes | None = record.key
    value: bytes | None = record.value
    section: bytes = encode_headers(record.headers)
    view: RecordView = record_view(record.timestamp, key, value, section)
    if child.try_append(view_of(view), None, None) <= 0:
        raise RecordTooLargeError(
            f"A batch for {child.topic}-{child.partition} is too large to be split: "
            f"{child.records.raw_size} bytes and one more record"
        )
