"""Sizes of chunks: how large a batch's first one is, how it grows with the records, and what a closed batch gives back.

A batch pins about what it holds, not ``batch.size``.  So thousands of partitions with a few records each do not use up
``buffer.memory``, and whoever waits for memory waits because records fill it.  The Java client pins ``batch.size`` from
the first record to the acknowledgement (KIP-782 would have changed that).
"""

from __future__ import annotations

import cython
from cython.cimports.forebay._records.layout import BATCH_OVERHEAD
from cython.cimports.forebay._runtime.memory import resized_memory
from cython.cimports.forebay._runtime.mutex import acquire, release
from cython.cimports.forebay._runtime.primitives import put_raw

from forebay._accumulator.pool import Buffer, BufferPool

LEAST = cython.declare(cython.Py_ssize_t, 128)
"""Bytes of the smallest chunk."""
WORTH_MOVING = cython.declare(cython.Py_ssize_t, 1024)
"""Bytes that a closed batch must give back, or a sixteenth of ``batch.size``, or its records stay where they are."""


@cython.cfunc
@cython.exceptval(check=False)
def chunk_size(
    record: cython.Py_ssize_t, expected: cython.Py_ssize_t, batch_size: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Bytes of a new batch's first chunk.

    A chunk of more than half of ``batch_size`` is a whole one: the pool keeps those for reuse.

    Args:
        record: size of the first record.
        expected: size of the records in the partition's last batch.  An eighth more is taken, so that batches of about
            the same size do not grow.
        batch_size: ``batch.size``.
    """
    size: cython.Py_ssize_t = max(record, expected + (expected >> 3), LEAST)
    return max(batch_size, BATCH_OVERHEAD + record) if size > batch_size >> 1 else size


@cython.cfunc
@cython.exceptval(check=False)
def usable(chunk: Buffer, limit: cython.Py_ssize_t, compressed: cython.bint) -> cython.int:
    """Bytes of a chunk that records may take.

    Without compression the limit of the batch is in it, so that an append compares once.
    """
    size: cython.Py_ssize_t = chunk.size
    return cython.cast(cython.int, size if compressed else min(size, limit - BATCH_OVERHEAD))


@cython.ccall
@cython.exceptval(check=False)
def grow(chunk: Buffer, least: cython.Py_ssize_t, most: cython.Py_ssize_t) -> cython.bint:
    """Makes an open batch's only chunk twice as large, or ``least`` bytes, but at most ``most``.  Queue's lock held.

    It does not wait, and comes ahead of those that do, within the overdraft for batches that have their chunk.  False,
    with nothing changed, if there is no memory; then the batch is full.  The memory may move, so views are made
    only when a batch is closed.  The road not taken: to wait here for what may be only this batch's to give back.
    """
    size: cython.Py_ssize_t = max(2 * chunk.size, least)
    if size > most >> 1:
        size = most
    more: cython.Py_ssize_t = size - chunk.size
    pool: BufferPool = chunk.pool
    granted: cython.bint = False
    grown: cython.bint = False
    try:
        granted = take(pool, more, chunk.owner)
        if granted:
            chunk.base = resized_memory(chunk.base, chunk.size, size)
            chunk.size = size
            grown = True
    except MemoryError:
        pass
    if granted and not grown:
        give_back(pool, more, chunk.owner)
    return grown


@cython.cfunc
@cython.exceptval(-1)
def take(pool: BufferPool, size: cython.Py_ssize_t, owner: object) -> cython.bint:
    acquire(pool.lock)
    try:
        granted: cython.bint = pool.may_fill(size, owner)
        if granted:
            pool.count(owner, size)
    finally:
        release(pool.lock)
    return granted


@cython.cfunc
def give_back(pool: BufferPool, size: cython.Py_ssize_t, owner: object) -> cython.void:
    # Waiters hear nothing, because the queue's lock is held.  The batch's end wakes them.
    acquire(pool.lock)
    try:
        pool.count(owner, -size)
    finally:
        release(pool.lock)


@cython.ccall
def shrunk(chunk: Buffer) -> Buffer | None:
    """A buffer with what was written into a closed batch's chunk and no more; None if that is not worth it.

    The caller puts it in the chunk's place and releases the chunk.  The road not taken: ``realloc``.  It would leave
    holes that no whole chunk fits into.  May overdraw, until the chunk is released.
    """
    pool: BufferPool = chunk.pool
    if chunk.size - chunk.used < max(chunk.used, min(WORTH_MOVING, pool.poolable_size >> 4)):
        return None
    small: Buffer | None = None
    try:
        pool.charge(chunk.owner, chunk.used)
        small = pool.create(chunk.used, chunk.owner)
    except MemoryError:
        pass
    if small is not None:
        small.used = put_raw(small.base, 0, chunk.base, chunk.used)
    return small
