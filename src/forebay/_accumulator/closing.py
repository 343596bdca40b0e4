"""BatchCloser: makes the bytes of batches final, and updates the estimate of each topic's compression ratio.

The thread that filled a batch compresses it, so the work is spread over the application's threads.  The sender
compresses what it drains before it is full.  No lock is held meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import cython
from cython.cimports.forebay._accumulator.states import ABANDONED, CLOSED, CLOSING, FULL, LEFT
from cython.cimports.forebay._runtime.mutex import acquire, release

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.pool import Buffer, BufferPool
from forebay._accumulator.records import RecordsBuilder
from forebay._accumulator.topic import PartitionQueue
from forebay._delivery.sender_lock import IN_HAND
from forebay._runtime.threads import get_ident

COMPRESSION_UNIT_BYTES = cython.declare(cython.Py_ssize_t, 512 * 1024)
"""Raw bytes of batches that are compressed together, so that the two hand-overs of the GIL are worth it."""

logger = logging.getLogger("forebay.sender")


@cython.final
@cython.cclass
class BatchCloser:
    """Any thread.

    Args:
        compressor: of ``compression.type``; None for none.
        estimator: the compression ratios of this producer's topics; None without compression.
    """

    def __init__(self, compressor: Any = None, estimator: Any = None) -> None:
        self.compressor = compressor
        self.codec = None if compressor is None else compressor.type
        self.codec_id = 0 if compressor is None else int(compressor.type)
        self.estimator = estimator
        self.wake: Callable[[], Any] | None = None  # ends the sender's wait
        self.helped_threads: set[int] = set()  # each thread adds and removes itself
        self.helpers: Any = None
        self.watch: Any = None  # a BatchWatch while a trace is recorded
        if self.codec_id != 0:
            # Imported here, because a producer without compression needs none of it.
            from forebay._accumulator.helpers import CompressionHelpers, processors_to_spare

            self.helpers = CompressionHelpers(self.compress_queues, processors_to_spare(), COMPRESSION_UNIT_BYTES)

    @contextmanager
    def helped(self) -> Iterator[None]:
        """Within it, helpers compress what the calling thread fills.  For calls that fill many batches."""
        thread = get_ident()
        if self.helpers is None or thread in self.helped_threads:
            yield
            return
        self.helped_threads.add(thread)
        try:
            yield
        finally:
            self.helped_threads.discard(thread)

    def end(self) -> None:
        """Ends the helpers, once they have done what they accepted."""
        if self.helpers is not None:
            self.helpers.end()

    @cython.cfunc
    def ratio(self, topic: str) -> cython.double:
        """Compressed by raw size to expect; 1.0 without compression."""
        expected: cython.double = 1.0 if self.codec_id == 0 else self.estimator.estimation(topic, self.codec)
        return expected

    @cython.cfunc
    def forget_ratio(self, batch: ProducerBatch) -> cython.void:
        """``batch`` turned out too large, so the topic's estimate was too low; it begins anew."""
        if batch.records.compressed:
            self.estimator.set(batch.topic, self.codec, max(1.0, batch.records.observed_ratio()))

    @cython.cfunc
    def compress_full(self, queue: PartitionQueue) -> cython.void:
        """Compresses the batches that this thread filled in ``queue``, or has a helper do it; outside the lock."""
        if len(self.helped_threads) == 0 or get_ident() not in self.helped_threads:
            self.compress_queues([queue])
            return
        # A signal handler may come before any thread has taken the batches, and wait for them.
        in_hand: Any = (get_ident(), partial(self.leave_all_to_sender, [queue], []))
        IN_HAND.append(in_hand)
        try:
            self.offer_to_helpers(queue)
        finally:
            IN_HAND.remove(in_hand)

    @cython.cfunc
    def offer_to_helpers(self, queue: PartitionQueue) -> cython.void:
        """Hands the full batches of ``queue`` to helpers; what they do not accept this thread compresses."""
        while True:
            size: cython.Py_ssize_t = size_to_close(queue)
            if size == 0:
                return  # a helper has done it meanwhile
            try:
                if self.helpers.accept(queue, size):
                    return
                queues: list[Any] = self.helpers.unit(queue)
            except BaseException:
                # Ctrl-C: perhaps no thread takes them.
                self.leave_to_sender(queue)
                raise
            if len(queues) > 1:
                self.compress_queues(queues)  # no other thread takes the others now
            else:
                # Only the first: a helper may take the second, and would have nothing to do otherwise.
                self.compress_unit(queues)

    @cython.ccall
    def compress_queues(self, queues: list[Any]) -> cython.void:
        """Compresses the full batches of ``queues`` on this thread; raises only KeyboardInterrupt and its kind."""
        while self.compress_unit(queues):
            pass

    @cython.cfunc
    @cython.exceptval(-1)
    def compress_unit(self, queues: list[Any]) -> cython.bint:
        # The first of their full batches, up to COMPRESSION_UNIT_BYTES bytes; False if there was nothing to do.
        taken: list[Any] = []
        queue: PartitionQueue
        in_hand: Any = None
        try:
            in_hand = (get_ident(), partial(self.leave_all_to_sender, queues, taken))
            IN_HAND.append(in_hand)
            if not take_full(queues, taken):
                return False
            while len(taken) > 0:
                self.close_or_leave(taken[0])
                finish_first(taken)
            self.wake_sender()
            return True
        except BaseException:
            for queue in queues:
                self.leave_to_sender(queue)
            raise
        finally:
            # After Ctrl-C the sender closes the rest.
            self.finish_all(taken)
            if in_hand in IN_HAND:
                IN_HAND.remove(in_hand)

    def leave_all_to_sender(self, queues: list[Any], taken: list[Any]) -> None:
        """Leaves to the sender what is being compressed: a handler that interrupts this is going to wait for it.

        The output of the interrupted call is not used then.
        """
        batch: ProducerBatch
        queue: PartitionQueue
        for batch in list(taken):
            queue = batch.queue
            acquire(queue.lock)
            try:
                if batch.life == CLOSING:
                    batch.become(FULL)
            finally:
                release(queue.lock)
        for queue in queues:
            self.leave_to_sender(queue)
        self.wake_sender()

    @cython.cfunc
    def close_or_leave(self, batch: ProducerBatch) -> cython.void:
        # If it fails, the sender closes the batch.
        try:
            if batch.life == CLOSING:  # and not ABANDONED
                self.close_batch(batch)
        except Exception:
            # The records were accepted, so no send() may raise.  The sender fails the batch if it cannot close it.
            logger.debug("closing %r failed", batch, exc_info=True)

    @cython.cfunc
    def finish_all(self, taken: list[Any]) -> cython.void:
        """The sender closes what is left of these."""
        if len(taken) == 0:
            return
        while len(taken) > 0:
            finish_first(taken)
        self.wake_sender()

    @cython.cfunc
    def wake_sender(self) -> cython.void:
        # It may have skipped batches while a thread was closing them, and no other event makes it check again.
        if self.wake is not None:
            self.wake()

    @cython.cfunc
    def leave_to_sender(self, queue: PartitionQueue) -> cython.void:
        """Leaves the full batches of ``queue`` to the sender, uncompressed."""
        taken: list[Any] = []
        while take_full([queue], taken):
            self.finish_all(taken)

    @cython.ccall
    def close_batch(self, batch: ProducerBatch) -> cython.void:
        """Makes a batch's bytes final and updates the estimate of the ratio."""
        if batch.life == CLOSED:
            return
        watch = self.watch  # read once: the recorder's thread takes it away
        if watch is not None:
            watch.closing([batch])
        if not batch.records.compressed:
            make_final(batch, None)
            return
        pool: BufferPool = batch.account.pool
        owner: Any = batch.account.owner
        copied: cython.Py_ssize_t = self.copied(batch)
        # Megabytes for a short time.  They may overdraw: a thread that waited here would keep its chunks.
        if copied > 0:
            pool.charge(owner, copied)
        try:
            make_final(batch, self.compressor)
        finally:
            if copied > 0:
                pool.credit(owner, copied)
        if len(batch.records.payload) > 0:  # if not, the sender closes it (``leave_all_to_sender``)
            self.estimator.update(batch.topic, self.codec, batch.records.observed_ratio())

    @cython.cfunc
    @cython.exceptval(-1)
    def copied(self, batch: ProducerBatch) -> cython.Py_ssize_t:
        # Bytes that the compressor will copy of the raw records.
        if batch.records.buffer_count() < 2:
            return 0
        size: cython.Py_ssize_t = self.compressor.copied(batch.records.raw_size, batch.records.buffer_count())
        return size

    @cython.ccall
    def close_drained(self, batches: list[Any]) -> cython.void:
        """Closes what the sender has drained, in one call of the compressor for all that are not closed yet."""
        batch: ProducerBatch
        watch = self.watch
        if watch is not None:
            watch.closing(batches)
        if self.codec_id == 0:
            for batch in batches:
                make_final(batch, None)
            return
        small: list[Any] = []
        for batch in batches:
            # Large ones one after the other, so that there is never a copy of all of them at the same time.
            if batch.life == CLOSED:
                continue
            if self.copied(batch) > 0:
                self.close_batch(batch)
            else:
                small.append(batch)
        if len(small) < 2:
            for batch in small:
                self.close_batch(batch)
        else:
            self.close_together(small)

    @cython.cfunc
    def close_together(self, small: list[Any]) -> cython.void:
        batch: ProducerBatch
        charges: list[Any] = []
        try:
            if self.compressor.copied_by_many([batch.records.raw_size for batch in small]):
                charge(small, charges)
            topics = [batch.topic for batch in small]
            packed = self.compressor.compress_many([pieces_of(batch) for batch in small], topics)
        finally:
            credit(charges)
        for batch, output in zip(small, packed, strict=True):
            take_packed(batch, [output])
            self.estimator.update(batch.topic, self.codec, batch.records.observed_ratio())


@cython.ccall
@cython.exceptval(-1)
def make_final(batch: ProducerBatch, compressor: Any) -> cython.int:
    """Makes a batch's bytes final, compressing them with ``compressor`` if it has a codec; idempotent."""
    if batch.life == CLOSED:
        return 0
    if not batch.records.compressed:
        batch.close_for_appends()
        batch.records.keep()
        return sealed(batch)
    others: cython.bint = batch.life == CLOSING
    packed: list[Any] = compressor.compress_to_pieces(pieces_of(batch), batch.topic)
    # Not if it was left to the sender meanwhile, which closes it or has closed it.
    if not others or batch.is_being_closed() or batch.life == ABANDONED:
        take_packed(batch, packed)
    return 0


@cython.cfunc
@cython.exceptval(-1)
def sealed(batch: ProducerBatch) -> cython.int:
    # The payload is final.  If the batch is CLOSING, the thread that compressed it makes this move in ``finish_first``.
    return batch.become(CLOSED) if batch.life == FULL else 0


@cython.ccall
def pieces_of(batch: ProducerBatch) -> list[Any]:
    """A batch's raw records in the chunks they stand in; closes it for appends."""
    batch.close_for_appends()
    return batch.records.written()


@cython.ccall
def take_packed(batch: ProducerBatch, packed: list[Any]) -> cython.void:
    """Makes ``packed``, the compressed records in pieces, a batch's bytes, and lets the raw chunks go."""
    records: RecordsBuilder = batch.records
    if records.first_chunk is None:
        return  # aborted meanwhile (a forced close), and its memory released
    output: Buffer = records.keep_packed(packed)
    # Before the raw records go: if Ctrl-C comes between, nothing may close the batch again.
    sealed(batch)
    records.replace_chunks(output)


@cython.cfunc
def charge(batches: list[Any], charges: list[Any]) -> cython.void:
    # For a copy of their raw records.  It may overdraw: a thread that waited here would keep its chunks.
    batch: ProducerBatch
    pool: BufferPool
    for batch in batches:
        # Noted with the present owner: it may be another one when the charge is taken back.
        pool = batch.account.pool
        owner: Any = batch.account.owner
        charges.append((pool, owner, batch.records.raw_size))
        pool.charge(owner, batch.records.raw_size)


@cython.cfunc
def credit(charges: list[Any]) -> cython.void:
    pool: BufferPool
    size: cython.Py_ssize_t
    for pool, owner, size in charges:
        pool.credit(owner, size)


@cython.cfunc
@cython.exceptval(-1)
def take_full(queues: list[Any], taken: list[Any]) -> cython.bint:
    # The full batches that are to be compressed, several if they are small.  Under the lock no object is made that the
    # garbage collector tracks.
    queue: PartitionQueue
    batch: ProducerBatch
    size: cython.Py_ssize_t = 0
    for queue in queues:
        acquire(queue.lock)
        try:
            while len(queue.to_close) > 0 and size < COMPRESSION_UNIT_BYTES:
                batch = queue.to_close[0]  # the sender sends no later one before it
                taken.append(batch)
                if batch.life == LEFT:
                    batch.become(CLOSING)
                del queue.to_close[0]
                size += batch.records.raw_size
        finally:
            release(queue.lock)
    return len(taken) > 0


@cython.cfunc
def finish_first(taken: list[Any]) -> cython.void:
    # The thread is done with the first of these: it is the sender's.
    batch: ProducerBatch = taken[0]
    queue: PartitionQueue = batch.queue
    acquire(queue.lock)
    try:
        abandoned: cython.bint = batch.life == ABANDONED
        if batch.life == CLOSING:  # and not left to the sender meanwhile
            batch.become(CLOSED if len(batch.records.payload) > 0 else FULL)
    finally:
        release(queue.lock)
    if abandoned:
        batch.release()
    del taken[0]


@cython.cfunc
@cython.exceptval(-1)
def size_to_close(queue: PartitionQueue) -> cython.Py_ssize_t:
    # Raw bytes of the first batch that is to be compressed; 0 without one.
    batch: ProducerBatch | None = None
    acquire(queue.lock)
    try:
        if len(queue.to_close) > 0:
            batch = queue.to_close[0]
    finally:
        release(queue.lock)
    return 0 if batch is None else batch.records.raw_size
