"""Many rows into an open batch under one lock; the way of columns, beside ``RecordAccumulator.append`` for one record.

Any application thread.  What has no room in the open batch goes on with ``append``, which closes it or gets memory, so
that every rule about batches stays there.
"""

from __future__ import annotations

import cython
from cython.cimports.forebay._accumulator.accumulator import RecordAccumulator
from cython.cimports.forebay._accumulator.batch import ProducerBatch
from cython.cimports.forebay._accumulator.topic import PartitionQueue, TopicState
from cython.cimports.forebay._records.rows import RowWindow
from cython.cimports.forebay._runtime.mutex import acquire, give_way, release


@cython.cfunc
def try_rows(
    accumulator: RecordAccumulator,
    topic: TopicState,
    partition: cython.int,
    rows: RowWindow,
    at: cython.Py_ssize_t,
    until: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Rows ``order[at:until]`` into the open batch, as many as it has room for; where it stopped.

    Args:
        partition: its number, or -1 for the sticky one.
        rows: gets ``taker`` (the batch's result), ``first_index`` (of the first row in it), ``filled`` and ``taken``
            (what is returned, for a caller that Ctrl-C interrupts while a full batch is compressed).
    """
    rows.taken = at
    queue: PartitionQueue = accumulator.queue_of(topic, partition)
    to_close: cython.int = 0
    acquire(queue.lock)
    try:
        batch: ProducerBatch | None = queue.last
        if batch is None or batch.is_full() or (partition < 0 and topic.partitioner.is_changed(queue.partition)):
            return at
        before: cython.Py_ssize_t = batch.estimated_size()
        rows.taker = batch.result
        rows.first_index = batch.record_count
        until = batch.take_rows(rows, at, until)
        rows.taken = until
        rows.filled = batch.is_full()
        if partition < 0 and until > at:
            topic.partitioner.update(batch.estimated_size() - before, rows.filled)
        if rows.filled:
            to_close = accumulator.close_last(queue, batch)
    finally:
        release(queue.lock)
    if not rows.filled:
        # Another window is about to follow: the sender would wait for the lock until the batch is full.
        give_way(queue.lock)
    if to_close:
        accumulator.closer.close_full(queue)
    return until
