"""ProducerBatch: the records of one partition that travel, are acknowledged and fail together.

Records are written once, uncompressed, into chunks of the pool.  A batch is open, then closed for appends, then
closed (``closing.close``: its bytes are final), and completes once.  After that its records are never touched again:
a retry sends the same bytes under a header made anew.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._accumulator import states
from cython.cimports.forebay._accumulator.account import new_account
from cython.cimports.forebay._accumulator.chunks import ChunkedBatch
from cython.cimports.forebay._accumulator.pool import Buffer
from cython.cimports.forebay._delivery.callbacks import DeliveryCallbacks
from cython.cimports.forebay._delivery.future import RecordFuture
from cython.cimports.forebay._delivery.result import new_result
from cython.cimports.forebay._gate import GatedQueue
from cython.cimports.forebay._records.batch_v2 import put_record, record_body_size, record_size
from cython.cimports.forebay._records.layout import BATCH_OVERHEAD
from cython.cimports.forebay._records.rows import RowWindow
from cython.cimports.forebay._runtime.primitives import MAX_INT32, RecordPointer

from forebay._accumulator.states import LIFE_MOVES, LIVES, packed
from forebay.errors import IllegalStateError

RATIO_MARGIN = cython.declare(cython.double, 1.05)
"""Compressed size is estimated 5 % above what the topic's ratio promises."""

NO_PIECES: list[Any] = []
"""The payload of a batch that is open, or has let go of it; never changed."""

# What try_append answers when the record was not written.
NO_ROOM = cython.declare(cython.Py_ssize_t, 0)
NEEDS_CHUNK = cython.declare(cython.Py_ssize_t, -1)

MOVES = cython.declare(cython.ulonglong, packed(LIFE_MOVES))


# Not tracked by the garbage collector, which would walk all that waits again and again.  What refers back to a batch,
# its queue and those who list it, lets go of it when it has its outcome.
@cython.final
@cython.no_gc
@cython.cclass
class ProducerBatch(ChunkedBatch):
    """A batch for ``queue``'s partition; ``new_batch`` makes one, as a constructor's keywords cost half of all that.

    Args:
        queue: the PartitionQueue it stands in.
        chunk: its first memory; the batch is a holder of it from now on.
        write_limit: most bytes of header and records, estimated after compression (``batch.size``, or the size
            of a first record that is larger).
        created: monotonic ms; delivery.timeout.ms counts from here.
        compression_ratio: the topic's estimate for its codec; 1.0 without compression.
        codec_id: record format v2's codec number, 0 for none.
        raw_limit: most bytes of header and records before compression, a first record excepted; 0 for no
            limit but that of the format.
        first: of a part of a batch that was split: the index of its first record in the batch that was appended to.
    """

    @cython.cfunc
    def begin(
        self,
        queue: GatedQueue,
        chunk: Buffer,
        write_limit: cython.Py_ssize_t,
        created: cython.double,
        codec_id: cython.int,
        compression_ratio: cython.double,
        raw_limit: cython.Py_ssize_t,
        first: cython.int,
    ) -> object:
        self.queue = queue
        self.topic, self.partition = queue.topic, queue.partition
        self.account = new_account(chunk.pool, chunk.owner)
        self.result = new_result(queue.topic, queue.partition, self.account, first)
        self.callbacks: DeliveryCallbacks | None = None
        self.payload = NO_PIECES
        self.begin_with(chunk)
        self.write_limit = write_limit
        self.raw_limit = raw_limit if raw_limit > 0 else MAX_INT32
        self.codec_id = codec_id
        self.compressed = codec_id != 0
        self.compression_ratio = compression_ratio
        self.created = created
        self.drained = self.retry_at = 0.0
        self.leader_epoch = self.attempts_when_leader_last_changed = self.last_node = -1
        self.topic_id: bytes | None = None
        self.set_producer_state(-1, -1, -1, False)
        self.raw_size = self.max_record_size = self.payload_size = 0
        self.record_count = self.attempts = self.drain_number = self.incarnation = self.stamped_for = 0
        self.final_state = states.NOT_FINAL
        self.life = states.OPEN
        self.in_flight = self.by_name = False
        self.maybe_written = False  # an earlier attempt's fate is unknown
        self.asked = 0  # number of the metadata request that is to tell which topic it goes to; -1: answered
        self.last_error: Any = None
        self.checked = self.checksum = 0
        self.slot = -1
        return None

    @cython.cfunc
    @cython.exceptval(-2)
    def try_append(self, record: RecordPointer, future: RecordFuture | None, callback: Any) -> cython.Py_ssize_t:
        """Writes the record if there is room: its size in bytes, or NO_ROOM, or NEEDS_CHUNK.  Queue's lock held."""
        if self.life != states.OPEN:
            return NO_ROOM
        count: cython.int = self.record_count
        if count == 0:
            self.base_timestamp = record.timestamp
            self.max_timestamp = record.timestamp
        size: cython.Py_ssize_t = put_record(
            self.base, self.position, self.room(), record, record.timestamp - self.base_timestamp, count
        )
        if size < 0:
            return self.room_for(-size)
        # What was written counts from here on.
        if not self.affords(callback):
            return NO_ROOM
        self.position += size
        self.raw_size += size
        self.record_count = count + 1
        if record.timestamp > self.max_timestamp:
            self.max_timestamp = record.timestamp
        if size > self.max_record_size:
            self.max_record_size = size
        if future is not None:
            self.attach(record, future)
        if callback is not None:
            cython.cast(DeliveryCallbacks, self.callbacks).add(
                count, callback, record.timestamp, record.key_size, record.value_size
            )
        return size

    @cython.cfunc
    def take_rows(self, rows: RowWindow, at: cython.Py_ssize_t, until: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Writes rows ``order[at:until]`` behind what is there while there is room, without the GIL; where it stopped.

        Queue's lock held; a first record, with which a batch's times and account begin, goes by ``try_append``.
        """
        if self.life != states.OPEN or self.record_count == 0 or self.account.stopped:
            return at
        rows.position = self.position
        rows.largest = self.max_record_size
        rows.latest = self.max_timestamp
        rows.raw_size = self.raw_size
        rows.ratio = self.compression_ratio if self.compressed else 1.0
        rows.margin = RATIO_MARGIN if self.compressed else 1.0
        rows.limit = self.write_limit - BATCH_OVERHEAD
        end: cython.Py_ssize_t = self.position + self.raw_room()
        base: cython.p_uchar = self.base
        if self.compressed:
            with cython.nogil:
                until = rows.write(at, until, base, end, self.base_timestamp, self.record_count)
        else:
            rows.checked = self.checked
            rows.checksum = self.checksum
            with cython.nogil:
                until = rows.write_checked(at, until, base, end, self.base_timestamp, self.record_count)
            self.checked = rows.checked
            self.checksum = rows.checksum
        rows.written = rows.position - self.position
        self.raw_size = rows.raw_size
        self.position = rows.position
        self.max_record_size = rows.largest
        self.max_timestamp = rows.latest
        self.record_count += cython.cast(cython.int, until - at)
        return until

    @cython.exceptval(check=False)
    @cython.cfunc
    def raw_room(self) -> cython.Py_ssize_t:
        # How many bytes several records may take together before compression; ``room_for`` asks for one.
        room: cython.Py_ssize_t = self.capacity - self.position
        if self.compressed:
            room = min(room, self.raw_limit - BATCH_OVERHEAD - self.raw_size)
        return max(0, room)

    @cython.exceptval(check=False)
    @cython.cfunc
    def room(self) -> cython.Py_ssize_t:
        # For one more record, in bytes; not above 0 for none.
        room: cython.Py_ssize_t = self.capacity - self.position
        if self.record_count == 0:
            return room
        if not self.compressed:
            return min(room, self.write_limit - BATCH_OVERHEAD - self.raw_size)
        return min(self.raw_room(), self.write_limit - self.estimated_size())

    @cython.exceptval(check=False)
    @cython.cfunc
    def room_for(self, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        # ``size`` itself if so many bytes can be written now, else NO_ROOM or NEEDS_CHUNK.
        if self.record_count > 0:
            if self.write_limit < self.estimated_size() + size:
                return NO_ROOM
            # The ratio is only a guess: what compresses badly after all must still fit into a request.
            if self.compressed and self.raw_limit < BATCH_OVERHEAD + self.raw_size + size:
                return NO_ROOM
        if self.position + size <= self.capacity:
            return size
        # A record that no chunk can hold gets a batch with memory of its own.
        if self.record_count > 0 and self.compressed and size <= cython.cast(Buffer, self.chunk).pool.poolable_size:
            return NEEDS_CHUNK
        return NO_ROOM

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def affords(self, callback: Any) -> cython.bint:
        # Whether there is memory for what the record costs beside its bytes.  For a first record it need not be there:
        # who waited in line for the chunk has a place in it.
        if self.record_count == 0:
            self.account.open(callback)
        elif self.account.stopped:
            return False
        return callback is None or self.affords_callback(callback)

    @cython.cfunc
    @cython.exceptval(-1)
    def affords_callback(self, callback: Any) -> cython.bint:
        # Makes room for it, so that keeping it cannot fail once the record is in.
        index: cython.Py_ssize_t = self.record_count
        callbacks: DeliveryCallbacks | None = self.callbacks
        if (
            callbacks is not None
            and callbacks.count == index
            and index < callbacks.room
            and callbacks.repeats(callback)
            and self.account.afford_another()
        ):
            return True  # one function for all records, as most applications have it: nothing but two numbers more
        if callbacks is None:
            callbacks = DeliveryCallbacks()
            self.callbacks = callbacks
            self.result.deliveries = callbacks
        if index > 0 and not self.account.afford(
            callback, callbacks.repeats(callback), index - callbacks.count, cython.cast(cython.int, index)
        ):
            return False
        # The batch's records so far tell how many it will have.
        expected: cython.Py_ssize_t = 0
        if self.raw_size > 0:
            expected = index * self.write_limit // self.raw_size + 1
        callbacks.reserve(index, expected)
        return True

    @cython.exceptval(check=False)
    @cython.cfunc
    def lacks_chunk(self, record: RecordPointer) -> cython.bint:
        """True if nothing but a further chunk is missing for the record; queue's lock held."""
        delta: cython.longlong = record.timestamp - self.base_timestamp
        body: cython.Py_ssize_t = record_body_size(
            delta, self.record_count, record.key_size, record.value_size, record.headers_size
        )
        return self.life == states.OPEN and self.room_for(record_size(body)) == NEEDS_CHUNK

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
        """Header and records in bytes: exact once closed or without compression, else by the topic's ratio."""
        if self.life == states.CLOSED:
            return BATCH_OVERHEAD + self.payload_size
        if self.compressed:
            return BATCH_OVERHEAD + cython.cast(
                cython.Py_ssize_t, self.raw_size * self.compression_ratio * RATIO_MARGIN
            )
        return BATCH_OVERHEAD + self.raw_size

    @cython.ccall
    @cython.exceptval(check=False)
    def is_full(self) -> cython.bint:
        """True if it takes no more records: closed for appends, or at its limit."""
        return self.life != states.OPEN or (self.record_count > 0 and self.write_limit <= self.estimated_size())

    @cython.cfunc
    def add_chunk(self, chunk: Buffer, spare: list[Any]) -> cython.void:
        self.go_on_in(chunk, spare)
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
        """The only way to another state but FULL; queue's lock held.

        Raises:
            IllegalStateError: there is no such move.
        """
        if not (MOVES >> (8 * self.life + life)) & 1:
            raise IllegalStateError(f"{self!r} is {LIVES[self.life]} and cannot become {LIVES[life]}")
        self.life = life
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_others(self) -> cython.bint:
        """Whether another thread is to compress it, or does so; queue's lock held."""
        return self.life == states.LEFT or self.life == states.CLOSING

    @cython.ccall
    @cython.exceptval(-1)
    def release(self) -> cython.int:
        """The batch itself lets go of its memory; idempotent.

        Of the bytes too: a flush holds on to its batches until the last of them has its outcome.
        """
        self.payload = NO_PIECES
        self.callbacks = None
        self.replace_chunks(None)
        self.account.close()
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def move_to(self, owner: Any) -> cython.bint:
        """Counts its memory against another owner's share: another node leads its partition now.

        Queue's lock held if the batch is open.  True if something changed: ``account.settle()`` is due then, outside
        that lock.
        """
        if owner == self.account.owner:
            return False
        self.account.move(owner, self.first_chunk, self.further_chunks)
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def aim_at(self, incarnation: cython.int, topic_id: bytes | None, leader_epoch: cython.int) -> cython.void:
        """Notes what it is drained for: the topic's incarnation and id, and the leader's epoch."""
        if incarnation != self.incarnation:
            self.leader_epoch = -1  # those of another topic say nothing
        self.incarnation = incarnation
        self.topic_id = topic_id
        self.update_leader_epoch(leader_epoch)

    @cython.ccall
    @cython.exceptval(check=False)
    def update_leader_epoch(self, epoch: cython.int) -> cython.bint:
        """Notes the leader's epoch; only a newer one counts as a change (KIP-951)."""
        if epoch < 0 or epoch <= self.leader_epoch:
            return False
        self.attempts_when_leader_last_changed = self.attempts
        self.leader_epoch = epoch
        return True

    @cython.ccall
    @cython.exceptval(check=False)
    def leader_changed_for_retry(self) -> cython.bint:
        """True if this attempt is a retry and the leader changed for it: it need not back off."""
        return self.attempts >= 1 and self.attempts == self.attempts_when_leader_last_changed

    @cython.ccall
    @cython.exceptval(check=False)
    def reached_delivery_timeout(self, timeout_ms: cython.double, now: cython.double) -> cython.bint:
        """True from ``created + delivery.timeout.ms`` on, inclusively."""
        return now - self.created >= timeout_ms

    @cython.ccall
    @cython.exceptval(-1)
    def complete(self, base_offset: cython.longlong, log_append_time: cython.longlong, report: Any) -> cython.bint:
        """Acknowledged.  False, without effect, if it had failed or was aborted before.

        Raises:
            IllegalStateError: it was acknowledged before.
        """
        if not self._finish(states.SUCCEEDED):
            return False
        return self.result.settle(base_offset, log_append_time, None, None, self.record_count, report)

    @cython.ccall
    @cython.exceptval(-1)
    def fail(self, error: Any, record_errors: dict[int, Any] | None, report: Any) -> cython.bint:
        """Failed with ``error``.  False, without effect, if it had failed or was aborted before.

        Raises:
            IllegalStateError: it was acknowledged before.
        """
        if not self._finish(states.FAILED):
            return False
        return self.result.settle(-1, -1, error, record_errors, self.record_count, report)

    @cython.ccall
    @cython.exceptval(-1)
    def abort(self, error: Any, report: Any) -> cython.bint:
        """Given up with ``error`` before an outcome was known.

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
        """Another thread is to compress it, or does so."""
        return self.is_others()

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
def new_batch(
    queue: GatedQueue,
    chunk: Buffer,
    write_limit: cython.Py_ssize_t,
    created: cython.double,
    codec_id: cython.int,
    compression_ratio: cython.double,
    raw_limit: cython.Py_ssize_t,
    first: cython.int,
) -> ProducerBatch:
    """See ``ProducerBatch``."""
    batch: ProducerBatch = ProducerBatch.__new__(ProducerBatch)
    batch.begin(queue, chunk, write_limit, created, codec_id, compression_ratio, raw_limit, first)
    return batch
