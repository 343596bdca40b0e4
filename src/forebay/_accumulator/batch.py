"""ProducerBatch: the records of one partition that travel, are acknowledged and fail together.

A batch is open, then closed for appends, then closed (``closing.close``: its bytes are final), and completes once.  Its
bytes are in ``records``.  A retry sends the same bytes under a new header.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._accumulator import states
from cython.cimports.forebay._accumulator.account import new_account
from cython.cimports.forebay._delivery.result import new_result
from cython.cimports.forebay._records.batch_v2 import fill_header
from cython.cimports.forebay._records.layout import BATCH_OVERHEAD, TRANSACTIONAL_BIT, V2_ATTRIBUTES_AT, V2_CRC_AT
from cython.cimports.forebay._runtime.memory import new_bytearray
from cython.cimports.forebay._runtime.primitives import RecordPointer, bytearray_pointer, bytes_at, crc32c, put_int32

from forebay._accumulator.pool import Buffer
from forebay._accumulator.records import RecordsBuilder
from forebay._accumulator.states import LIFE_MOVES, LIVES, packed
from forebay._delivery.callbacks import DeliveryCallbacks
from forebay._delivery.future import RecordFuture
from forebay._records.rows import RowWindow
from forebay.errors import IllegalStateError
from forebay.model._gate import GatedQueue, StampedBatch

MOVES = cython.declare(cython.ulonglong, packed(LIFE_MOVES))


# Not tracked by the garbage collector, which would walk all waiting batches again and again.  So no cycle may last: its
# queue and the lists that it is in drop a batch when it has its outcome.
@cython.final
@cython.no_gc
@cython.cclass
class ProducerBatch(StampedBatch):
    """A batch for ``queue``'s partition; ``new_batch`` makes one, without the cost of a constructor's keywords.

    Args:
        queue: the PartitionQueue it stands in.
        records: its bytes; ``records.new_records`` makes them.
        created: monotonic ms; delivery.timeout.ms counts from here.
        first: of a part of a batch that was split: the index of its first record in the batch that was appended to.
    """

    @cython.cfunc
    def set_up(self, queue: GatedQueue, records: RecordsBuilder, created: cython.double, first: cython.int) -> object:
        chunk: Buffer = records.buffer_at(0)
        self.queue = queue
        self.records = records
        self.account = new_account(chunk.pool, chunk.owner)
        self.result = new_result(queue.topic, queue.partition, self.account, first)
        self.created = created
        self.drained = self.retry_at = 0.0
        self.leader_epoch = self.attempts_when_leader_last_changed = self.last_node = -1
        self.topic_id: bytes | None = None
        self.set_producer_state(-1, -1, -1, False)
        self.record_count = self.attempts = self.drain_number = self.incarnation = self.stamped_for = 0
        self.final_state = states.NOT_FINAL
        self.life = states.OPEN
        self.in_flight = self.by_name = self.sparse = False
        self.maybe_written = False  # an earlier attempt may have been written
        self.metadata_ticket = 0  # number of the metadata request that is to tell which topic it goes to; -1: answered
        self.last_error: Any = None
        self.slot = -1
        return None

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.queue.topic  # type: ignore[no-any-return]

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self.queue.partition  # type: ignore[no-any-return]

    @cython.cfunc
    @cython.exceptval(-2)
    def try_append(self, record: RecordPointer, future: RecordFuture | None, callback: Any) -> cython.Py_ssize_t:
        """Writes the record if there is room: its size in bytes, or NO_ROOM, or CHUNK_FULL.  Queue's lock held."""
        if self.life != states.OPEN:
            return states.NO_ROOM
        count: cython.int = self.record_count
        size: cython.Py_ssize_t = self.records.write(record, count)
        if size <= 0:
            return size
        # What was written counts only if there is memory for the rest.
        if not self.affords(callback):
            return states.NO_ROOM
        self.records.add(size, record.timestamp)
        self.record_count = count + 1
        if future is not None:
            self.attach(record, future)
        if callback is not None:
            cython.cast(DeliveryCallbacks, self.result.deliveries).add(
                count, callback, record.timestamp, record.key_size, record.value_size
            )
        return size

    @cython.cfunc
    def append_rows(self, rows: RowWindow, at: cython.Py_ssize_t, until: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Appends rows ``order[at:until]`` while there is room, without the GIL; where it stopped.

        Queue's lock held.  The first record, with which times and account begin, is for ``try_append``.
        """
        if self.life != states.OPEN or self.record_count == 0 or self.account.stopped:
            return at
        until = self.records.write_rows(rows, at, until, self.record_count)
        self.record_count += cython.cast(cython.int, until - at)
        return until

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def affords(self, callback: Any) -> cython.bint:
        # Whether there is memory for what the record costs beside its bytes.  A first record needs none to be left: its
        # thread has waited for the chunk.
        if self.record_count == 0:
            self.account.open(callback)
        elif self.account.stopped:
            return False
        return callback is None or self.affords_callback(callback)

    @cython.cfunc
    @cython.exceptval(-1)
    def affords_callback(self, callback: Any) -> cython.bint:
        # Makes room for the callback, so that keeping it cannot fail once the record is in.
        index: cython.Py_ssize_t = self.record_count
        callbacks: DeliveryCallbacks | None = self.result.deliveries
        if (
            callbacks is not None
            and callbacks.count == index
            and index < callbacks.room
            and callbacks.repeats(callback)
            and self.account.afford_another()
        ):
            return True  # one function for all records, as in most applications: only two more numbers
        if callbacks is None:
            callbacks = DeliveryCallbacks()
            self.result.deliveries = callbacks
        if index > 0 and not self.account.afford(
            callback, callbacks.repeats(callback), index - callbacks.count, cython.cast(cython.int, index)
        ):
            return False
        # An estimate from the records so far of how many the batch will have.
        expected: cython.Py_ssize_t = 0
        if self.records.raw_size > 0:
            expected = index * self.records.write_limit // self.records.raw_size + 1
        callbacks.reserve(index, expected)
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def attach(self, record: RecordPointer, future: RecordFuture) -> cython.void:
        future._batch = self.result
        future._index = self.record_count - 1
        future._timestamp = record.timestamp
        future._key_size = cython.cast(cython.int, record.key_size)
        future._value_size = cython.cast(cython.int, record.value_size)

    @cython.ccall
    @cython.exceptval(check=False)
    def estimated_size(self) -> cython.Py_ssize_t:
        """Header and records in bytes, see ``RecordsBuilder.estimated_size``."""
        return self.records.estimated_size()

    @cython.ccall
    @cython.exceptval(check=False)
    def is_full(self) -> cython.bint:
        """True if it takes no more records: closed for appends, or at its limit."""
        return self.life != states.OPEN or self.records.is_full()

    @cython.cfunc
    @cython.exceptval(check=False)
    def lacks_chunk(self, record: RecordPointer) -> cython.bint:
        """True if nothing but a further chunk is missing for the record; queue's lock held."""
        return self.life == states.OPEN and self.records.lacks_chunk(record, self.record_count)

    @cython.cfunc
    def add_chunk(self, chunk: Buffer, spare: list[Any]) -> cython.void:
        self.records.go_on_in(chunk, spare)
        self.account.add_chunk()

    @cython.ccall
    @cython.exceptval(check=False)
    def close_for_appends(self) -> cython.void:
        """Takes no further records; queue's lock held."""
        if self.life == states.OPEN:
            self.life = states.FULL

    @cython.ccall
    @cython.exceptval(-1)
    def become(self, life: cython.int) -> cython.int:
        """The only way to a state other than FULL; queue's lock held.

        Raises:
            IllegalStateError: there is no such move.
        """
        if not (MOVES >> (8 * self.life + life)) & 1:
            raise IllegalStateError(f"{self!r} is {LIVES[self.life]} and cannot become {LIVES[life]}")
        self.life = life
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_being_closed(self) -> cython.bint:
        """Whether a thread is to compress it, or does so, and the sender keeps off; queue's lock held."""
        return self.life == states.LEFT or self.life == states.CLOSING

    @cython.ccall
    @cython.exceptval(-1)
    def release(self) -> cython.int:
        """Lets go of the batch's memory, its bytes too; idempotent.

        A flush keeps its batches until the last of them has its outcome, so the memory cannot wait for the batch's end.
        """
        self.records.release()
        self.account.close()
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def move_to(self, owner: Any) -> cython.bint:
        """Counts its memory against another owner's share, because another node leads its partition.

        Queue's lock held if the batch is open.  True if something changed: then ``pool.serve_waiters`` is due, outside
        that lock.
        """
        if owner == self.account.owner:
            return False
        self.account.move(owner, self.records.first_chunk, self.records.further_chunks)
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def set_target(self, incarnation: cython.int, topic_id: bytes | None, leader_epoch: cython.int) -> cython.void:
        """Notes where it is drained to: the topic's incarnation and id, and the leader's epoch."""
        if incarnation != self.incarnation:
            self.leader_epoch = -1  # epochs of another incarnation are not comparable
        self.incarnation = incarnation
        self.topic_id = topic_id
        self.update_leader_epoch(leader_epoch)

    @cython.ccall
    @cython.exceptval(check=False)
    def update_leader_epoch(self, epoch: cython.int) -> cython.bint:
        """Notes the leader's epoch; True if it is newer (KIP-951)."""
        if epoch < 0 or epoch <= self.leader_epoch:
            return False
        self.attempts_when_leader_last_changed = self.attempts
        self.leader_epoch = epoch
        return True

    @cython.ccall
    @cython.exceptval(check=False)
    def leader_changed_for_retry(self) -> cython.bint:
        """True if this attempt is a retry to a new leader, which needs no back-off."""
        return self.attempts >= 1 and self.attempts == self.attempts_when_leader_last_changed

    @cython.ccall
    @cython.exceptval(check=False)
    def reached_delivery_timeout(self, timeout_ms: cython.double, now: cython.double) -> cython.bint:
        """True from ``created + delivery.timeout.ms`` on."""
        return now >= self.created + timeout_ms  # rounded as the schedule's next expiry is

    @cython.ccall
    @cython.exceptval(-1)
    def complete(self, base_offset: cython.longlong, log_append_time: cython.longlong, report: Any) -> cython.bint:
        """The batch is acknowledged.  False, without effect, if it had failed or was aborted before.

        Raises:
            IllegalStateError: it was acknowledged before.
        """
        if not self._finish(states.SUCCEEDED):
            return False
        return self.result.settle(base_offset, log_append_time, None, None, self.record_count, report)

    @cython.ccall
    @cython.exceptval(-1)
    def fail(self, error: Any, record_errors: dict[int, Any] | None, report: Any) -> cython.bint:
        """The batch failed with ``error``.  False, without effect, if it had failed or was aborted before.

        Raises:
            IllegalStateError: it was acknowledged before.
        """
        if not self._finish(states.FAILED):
            return False
        return self.result.settle(-1, -1, error, record_errors, self.record_count, report)

    @cython.ccall
    @cython.exceptval(-1)
    def abort(self, error: Any, report: Any) -> cython.bint:
        """The batch is given up with ``error`` before its outcome is known.

        Raises:
            IllegalStateError: it has an outcome.
        """
        if self.final_state != states.NOT_FINAL:
            raise IllegalStateError(f"{self!r} cannot be aborted: it has an outcome already")
        self.final_state = states.ABORTED
        return self.result.settle(-1, -1, error, None, self.record_count, report)

    @cython.cfunc
    @cython.exceptval(-1)
    def _finish(self, state: cython.int) -> cython.bint:
        if self.final_state == states.NOT_FINAL:
            self.final_state = state
            return True
        if self.final_state == states.SUCCEEDED:
            raise IllegalStateError(f"{self!r} was acknowledged already")
        return False

    @property
    def done(self) -> bool:
        """It has its outcome."""
        return self.final_state != states.NOT_FINAL

    @property
    def closed(self) -> bool:
        """Its bytes are final."""
        return self.life == states.CLOSED

    @property
    def closing(self) -> bool:
        """A thread is to compress it, or does so."""
        return self.is_being_closed()

    @cython.ccall
    def header(self) -> bytes:
        """The header of a closed batch for the next request, signed."""
        records: RecordsBuilder = self.records
        header: bytearray = new_bytearray(BATCH_OVERHEAD)
        to: cython.p_uchar = bytearray_pointer(header)
        fill_header(
            to,
            BATCH_OVERHEAD + records.payload_size,
            records.codec_id | (TRANSACTIONAL_BIT if self.transactional else 0),
            self.record_count,
            records.base_timestamp,
            records.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            0,
            -1,
        )
        signed: cython.longlong = crc32c(0, to, V2_ATTRIBUTES_AT, BATCH_OVERHEAD - V2_ATTRIBUTES_AT)
        put_int32(to, V2_CRC_AT, records.checksum_after(signed))
        return bytes_at(to, 0, BATCH_OVERHEAD)

    def __reduce__(self) -> Any:
        raise TypeError("a ProducerBatch cannot be pickled: its memory belongs to a producer of this process")

    def __repr__(self) -> str:
        state = (
            ("open", "succeeded", "failed", "aborted", "split")[self.final_state]
            if self.final_state
            else LIVES[self.life].lower()
        )
        return (
            f"<ProducerBatch {self.topic}-{self.partition}: {self.record_count} records, "
            f"{self.estimated_size()} bytes, {state}, attempt {self.attempts}>"
        )


@cython.cfunc
def new_batch(queue: GatedQueue, records: RecordsBuilder, created: cython.double, first: cython.int) -> ProducerBatch:
    """See ``ProducerBatch``."""
    batch: ProducerBatch = ProducerBatch.__new__(ProducerBatch)
    batch.set_up(queue, records, created, first)
    return batch
