"""Records that are to be one batch of the log: written together, and delivered or failed together.

``BatchAppender`` fills batches as records come.  Here all records of a batch are there, so it is closed when it is seen
first: no other record comes into it, and no part of it goes out before the rest.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._accumulator.batch import new_batch
from cython.cimports.forebay._accumulator.records import new_records
from cython.cimports.forebay._accumulator.states import APPENDED, BEGUN, WAIT
from cython.cimports.forebay._runtime.mutex import acquire, release
from cython.cimports.forebay._runtime.primitives import MAX_INT32, RecordView, record_view, view_of

from forebay._accumulator.appender import BatchAppender
from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.pool import Buffer
from forebay._accumulator.records import RecordsBuilder
from forebay._accumulator.topic import PartitionQueue, TopicState
from forebay._delivery.future import RecordFuture
from forebay.errors import IllegalStateError


@cython.cfunc
@cython.exceptval(-1)
def append_whole(
    appender: BatchAppender,
    topic: TopicState,
    partition: cython.int,
    records: list[Any],
    size: cython.Py_ssize_t,
    future: RecordFuture,
    ticket: Any,
    now: cython.double,
) -> cython.int:
    """Puts one batch with these records behind the partition's others: APPENDED | BEGUN; or WAIT.  Any thread.

    Args:
        records: tuples of timestamp, key, value and the headers' section; at least one.
        size: of the batch's header and records, in bytes.
        future: the first record's.
        ticket: waits for memory after WAIT.
        now: monotonic ms, read after the last wait.

    Raises:
        IllegalArgumentError: it is larger than the whole pool.
        ProducerClosedError: the producer was closed meanwhile.
        KafkaError: the guard's, while appends are sealed.
    """
    queue: PartitionQueue = appender.queue_of(topic, partition)
    buffer: Buffer | None = None
    status: cython.int = WAIT
    try:
        buffer = appender.pool.allocate(size, queue.leader_id, ticket)
        if buffer is not None:
            status = add_batch(appender, topic, queue, buffer, records, future, now)
        # It may have been sealed, and the waiters woken, before this ticket was one of them.
        if status == WAIT and appender.refuses():
            raise appender.refusal()
    except BaseException:
        appender.drop_unused(buffer, ticket)
        raise
    if status != WAIT:
        appender.drop_unused(buffer, ticket)
    return status


@cython.cfunc
@cython.exceptval(-1)
def add_batch(
    appender: BatchAppender,
    topic: TopicState,
    queue: PartitionQueue,
    buffer: Buffer,
    records: list[Any],
    future: RecordFuture,
    now: cython.double,
) -> cython.int:
    # WAIT if no batch is accepted any more.  Limits are off: all records fit into the buffer, and no more will come.
    ratio: cython.double = appender.closer.ratio(topic.name)
    written: RecordsBuilder = new_records(buffer, MAX_INT32, appender.codec_id, ratio, 0)
    batch: ProducerBatch = new_batch(queue, written, now, 0)
    to_close: cython.int = 0
    acquire(queue.lock)
    try:
        if not appender.incomplete.admit(batch):
            return WAIT
        for timestamp, key, value, section in records:
            record: RecordView = record_view(timestamp, key, value, section)
            if batch.try_append(view_of(record), future if batch.record_count == 0 else None, None) <= 0:
                break
        batch.result.is_whole = True
        if batch.record_count < len(records):
            appender.incomplete.discard(batch)
        else:
            if queue.last is not None:
                to_close = appender.close_last(queue, queue.last)
            queue.add(batch)
            written.buffer_at(0).retain()
            to_close |= appender.close_last(queue, batch)
    finally:
        release(queue.lock)
    if batch.record_count < len(records):
        raise IllegalStateError(f"{len(records)} records do not fit into {buffer.size} bytes")
    if to_close:
        appender.closer.compress_full(queue)
    return APPENDED | BEGUN
