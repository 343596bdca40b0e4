"""RecordsBuilder: a batch's records, from the first append to the bytes that a request carries.

Records are written once, uncompressed, into chunks of the pool.  When the batch is closed its bytes become final: they
are the chunks themselves, or the compressed records.  A retry sends the same bytes.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._accumulator.chunks import grow, shrunk, usable
from cython.cimports.forebay._accumulator.pool import Buffer, adopt
from cython.cimports.forebay._accumulator.states import CHUNK_FULL, CHUNK_SMALL, NO_ROOM
from cython.cimports.forebay._records.batch_v2 import put_large_record, put_record, record_body_size, record_size
from cython.cimports.forebay._records.layout import BATCH_OVERHEAD
from cython.cimports.forebay._records.rows import RowWindow
from cython.cimports.forebay._runtime.piece import piece_at
from cython.cimports.forebay._runtime.primitives import (
    MAX_INT32,
    RecordPointer,
    bytes_pointer,
    crc32c,
    crc32c_combined,
    put_raw,
)

RATIO_MARGIN = cython.declare(cython.double, 1.05)
"""Compressed size is estimated 5 % above what the topic's ratio promises."""
CACHED = cython.declare(cython.Py_ssize_t, 128 << 10)
"""Bytes that the processor's own cache still has when the last of them is written."""
LARGE = cython.declare(cython.Py_ssize_t, 32 << 10)
"""A value of so many bytes is larger than the fastest part of that cache."""

NO_PIECES: list[Any] = []
"""The payload of a batch that is not closed, or has released it; never changed."""


# Not tracked by the garbage collector, for the reason given at ProducerBatch.
@cython.final
@cython.no_gc
@cython.cclass
class RecordsBuilder:
    """The records of one batch; ``new_records`` makes one, without the cost of a constructor's keywords.

    Args:
        chunk: its first memory; the batch is a holder of it from now on.
        write_limit: most bytes of header and records, estimated after compression (``batch.size``, or the size of a
            first record that is larger).  A smaller chunk grows up to this.
        codec_id: record format v2's codec number, 0 for none.
        compression_ratio: the topic's estimate for its codec; 1.0 without compression.
        raw_limit: most bytes of header and records before compression, a first record excepted; 0 for no limit but
            that of the format.
    """

    if not cython.compiled:  # records.pxd says what they are
        base: Any
        chunk: Buffer | None
        position: int
        capacity: int
        base_timestamp: int
        max_timestamp: int
        write_limit: int
        raw_size: int
        max_record_size: int
        raw_limit: int
        compression_ratio: float
        compressed: bool
        codec_id: int
        checked: int
        checksum: int
        first_chunk: Buffer | None
        further_chunks: list[Any] | None
        payload: list[Any]
        payload_size: int

    # Writing

    @cython.cfunc
    @cython.exceptval(check=False)
    def write(self, record: RecordPointer, count: cython.int) -> cython.Py_ssize_t:
        """Writes the record behind the ``count`` that are there: its size in bytes, NO_ROOM or CHUNK_FULL.

        It counts once ``add`` was called.
        """
        if count == 0:
            self.base_timestamp = self.max_timestamp = record.timestamp
            self.checked = self.checksum = 0  # of a first record that was written and not added
            if record.value_size >= LARGE and not self.compressed:
                return self.write_large(record)
        size: cython.Py_ssize_t = put_record(
            self.base, self.position, self.room(), record, record.timestamp - self.base_timestamp, count
        )
        if size >= 0:
            return size
        answer: cython.Py_ssize_t = self.room_for(-size)
        if answer != CHUNK_SMALL:
            return answer
        if not self.grow(self.position - size):
            return NO_ROOM
        return put_record(self.base, self.position, self.room(), record, record.timestamp - self.base_timestamp, count)

    @cython.cfunc
    @cython.exceptval(check=False)
    def write_large(self, record: RecordPointer) -> cython.Py_ssize_t:
        """As ``write``, of a first record, whose checksum is taken piece by piece as it is copied.

        After it, all but the end of the record would have to come from memory again.
        """
        size: cython.Py_ssize_t = record_size(
            record_body_size(0, 0, record.key_size, record.value_size, record.headers_size)
        )
        if size > self.room():
            return self.room_for(size)
        self.checksum = put_large_record(self.base, record)
        self.checked = cython.cast(cython.int, size)
        return size

    @cython.cfunc
    @cython.exceptval(check=False)
    def add(self, size: cython.Py_ssize_t, timestamp: cython.longlong) -> cython.void:
        """Counts the record that was written last."""
        self.position += size
        self.raw_size += size
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        if size > self.max_record_size:
            self.max_record_size = size

    @cython.cfunc
    def write_rows(
        self, rows: RowWindow, at: cython.Py_ssize_t, until: cython.Py_ssize_t, count: cython.int
    ) -> cython.Py_ssize_t:
        """Writes and adds rows ``order[at:until]`` while there is room, without the GIL; where it stopped."""
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
                until = rows.write(at, until, base, end, self.base_timestamp, count)
        else:
            rows.checked = self.checked
            rows.checksum = self.checksum
            with cython.nogil:
                until = rows.write_checked(at, until, base, end, self.base_timestamp, count)
            self.checked = rows.checked
            self.checksum = rows.checksum
        rows.written = rows.position - self.position
        self.raw_size = rows.raw_size
        self.position = rows.position
        self.max_record_size = rows.largest
        self.max_timestamp = rows.latest
        return until

    # Room

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
        if not self.compressed or self.raw_size == 0:
            return self.capacity - self.position
        return min(self.raw_room(), self.write_limit - self.estimated_size())

    @cython.cfunc
    @cython.exceptval(check=False)
    def room_for(self, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        # ``size`` itself if so many bytes can be written now, else NO_ROOM, CHUNK_FULL or CHUNK_SMALL.
        if self.raw_size > 0:
            if self.write_limit < self.estimated_size() + size:
                return NO_ROOM
            # The ratio is only a guess: what compresses badly after all must still fit into a request.
            if self.compressed and self.raw_limit < BATCH_OVERHEAD + self.raw_size + size:
                return NO_ROOM
        if self.position + size <= self.capacity:
            return size
        if self.raw_size > 0:
            whole: cython.Py_ssize_t = cython.cast(Buffer, self.chunk).pool.poolable_size
            # The chunk of a batch without a limit, as the parts of a split have it, was made for all of its records.
            if self.further_chunks is None and self.position + size <= self.write_limit <= whole:
                return CHUNK_SMALL
            # A record that no chunk can hold gets a batch with memory of its own.
            if self.compressed and size <= whole:
                return CHUNK_FULL
        return NO_ROOM

    @cython.exceptval(check=False)
    @cython.cfunc
    def grow(self, size: cython.Py_ssize_t) -> cython.bint:
        # Makes the chunk large enough for ``size`` bytes; False if the pool has no memory.
        chunk: Buffer = cython.cast(Buffer, self.chunk)
        if not grow(chunk, size, self.write_limit):
            return False
        self.base = chunk.base
        self.capacity = usable(chunk, self.write_limit, self.compressed)
        return True

    @cython.exceptval(check=False)
    @cython.cfunc
    def lacks_chunk(self, record: RecordPointer, count: cython.int) -> cython.bint:
        """Whether nothing but a further chunk is missing for the record."""
        body: cython.Py_ssize_t = record_body_size(
            record.timestamp - self.base_timestamp, count, record.key_size, record.value_size, record.headers_size
        )
        return self.room_for(record_size(body)) == CHUNK_FULL

    @cython.ccall
    @cython.exceptval(check=False)
    def estimated_size(self) -> cython.Py_ssize_t:
        """Header and records in bytes: exact once closed or without compression, else by the topic's ratio."""
        if self.payload_size > 0:
            return BATCH_OVERHEAD + self.payload_size
        if self.compressed:
            return BATCH_OVERHEAD + cython.cast(
                cython.Py_ssize_t, self.raw_size * self.compression_ratio * RATIO_MARGIN
            )
        return BATCH_OVERHEAD + self.raw_size

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_full(self) -> cython.bint:
        """Whether the records have come to the limit."""
        return self.raw_size > 0 and self.write_limit <= self.estimated_size()

    # Chunks

    @cython.cfunc
    @cython.exceptval(check=False)
    def write_to(self, chunk: Buffer) -> cython.void:
        self.chunk = chunk
        self.base = chunk.base
        self.capacity = usable(chunk, self.write_limit, self.compressed)
        self.position = 0

    @cython.cfunc
    def go_on_in(self, chunk: Buffer, spare: list[Any]) -> cython.void:
        """Writes to a further chunk from now on.

        Args:
            spare: an empty list.  It is made before the queue's lock is taken: making one may run the garbage
                collector, which may run a finaliser that sends to the same partition.
        """
        further: list[Any] = spare if self.further_chunks is None else self.further_chunks
        further.append(chunk)
        self.further_chunks = further
        cython.cast(Buffer, self.chunk).used = self.position
        self.write_to(chunk)

    @property
    def buffers(self) -> list[Any]:
        """The chunks, or the one buffer with the compressed records; none once they are released."""
        return [self.buffer_at(at) for at in range(self.buffer_count())]

    @cython.cfunc
    @cython.exceptval(check=False)
    def buffer_count(self) -> cython.Py_ssize_t:
        if self.first_chunk is None:
            return 0
        return 1 if self.further_chunks is None else 1 + len(self.further_chunks)

    @cython.cfunc
    def buffer_at(self, at: cython.Py_ssize_t) -> Buffer:
        if at == 0:
            return cython.cast(Buffer, self.first_chunk)
        buffer: Buffer = cython.cast(list, self.further_chunks)[at - 1]
        return buffer

    @cython.ccall
    @cython.exceptval(-1)
    def hold(self, held: list[Any]) -> cython.int:
        """Adds a holder to each buffer, for a request that carries the bytes, and lists the buffers in ``held``."""
        buffer: Buffer
        at: cython.Py_ssize_t
        for at in range(self.buffer_count()):
            buffer = self.buffer_at(at)
            buffer.retain()
            held.append(buffer)
        return 0

    # Closing

    @cython.cfunc
    def written(self) -> list[Any]:
        """The raw records, a piece for each chunk."""
        if self.chunk is not None:
            self.chunk.used = self.position
        buffer: Buffer
        at: cython.Py_ssize_t
        pieces: list[Any] = []
        for at in range(self.buffer_count()):
            buffer = self.buffer_at(at)
            pieces.append(piece_at(buffer, buffer.base, 0, buffer.used))
        return pieces

    @cython.cfunc
    @cython.exceptval(check=False)
    def check_ahead(self) -> cython.void:
        """Takes the checksum of the records on the thread that has just written them; queue's lock held.

        The sender would read them out of another processor's cache, and hold the GIL for that.
        """
        if not self.compressed and self.position - self.checked <= CACHED:
            self.checksum = crc32c(self.checksum, self.base, self.checked, self.position - self.checked)
            self.checked = self.position

    @cython.cfunc
    @cython.exceptval(-1)
    def keep(self) -> cython.int:
        """Makes the raw records the payload: they are final.  What is left of their chunk goes back to the pool."""
        if self.chunk is not None:
            self.chunk.used = self.position
            small: Buffer | None = shrunk(self.chunk)
            if small is not None:
                self.replace_chunks(small)
        self.payload = self.written()
        self.payload_size = self.raw_size
        self.chunk = None
        return 0

    @cython.cfunc
    def keep_packed(self, packed: list[Any]) -> Buffer:
        """The compressed records ``packed`` are final; the buffer that has them, for ``replace_chunks``.

        Several pieces are put together in the first chunk, over the raw records, if that suits.  The road not taken: to
        join them.  A megabyte of fresh memory would go back to the system page by page.
        """
        first: Buffer = cython.cast(Buffer, self.first_chunk)
        if len(packed) > 1 and self.write_over(packed):
            return first
        joined: bytes = packed[0] if len(packed) == 1 else b"".join(packed)
        output: Buffer = adopt(first.pool, joined, first.owner)
        self.payload = [joined]
        self.payload_size = len(joined)
        return output

    @cython.cfunc
    @cython.exceptval(-1)
    def write_over(self, packed: list[Any]) -> cython.bint:
        """Writes ``packed`` into the first chunk as the payload, if that suits.

        At most a quarter of the chunk may be left over, because it is counted as a whole while the batch waits.  Never
        when interpreted: Ctrl-C may come between any two steps then, and records half overwritten are lost.
        """
        first: Buffer = cython.cast(Buffer, self.first_chunk)
        piece: bytes
        size: cython.Py_ssize_t = 0
        for piece in packed:
            size += len(piece)
        if not cython.compiled or not first.size - first.size // 4 <= size <= first.size:
            return False
        payload: list[Any] = [piece_at(first, first.base, 0, size)]
        # From here on nothing may fail or come between, until the batch is closed: no object is made.
        first.used = 0
        for piece in packed:
            first.used = put_raw(first.base, first.used, bytes_pointer(piece), len(piece))
        self.payload = payload
        self.payload_size = size
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def replace_chunks(self, buffer: Buffer | None) -> cython.int:
        """Lets go of all buffers but ``buffer``, which is the only one then."""
        first: Buffer | None = self.first_chunk
        further: list[Any] | None = self.further_chunks
        self.first_chunk = buffer
        self.further_chunks = self.chunk = None
        chunk: Buffer
        if first is not None and first is not buffer:
            first.release()
        if further is not None:
            for chunk in further:
                chunk.release()
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    def release(self) -> cython.int:
        """Lets go of all memory; idempotent.  Requests that hold a buffer keep it."""
        self.payload = NO_PIECES
        return self.replace_chunks(None)

    @cython.ccall
    @cython.exceptval(check=False)
    def observed_ratio(self) -> cython.double:
        """Compressed size by uncompressed size, headers included; 1.0 without compression."""
        if not self.compressed:
            return 1.0
        # The conversion matters: two C integers divide as C does.
        whole: cython.double = BATCH_OVERHEAD + self.payload_size
        return whole / (BATCH_OVERHEAD + self.raw_size)

    @cython.cfunc
    def checksum_after(self, checksum: cython.longlong) -> cython.longlong:
        """CRC-32C of what has ``checksum``, the end of the header, and the final bytes behind it."""
        chunk: Buffer
        at: cython.Py_ssize_t
        if self.checked > 0:
            # The thread that wrote a table's rows has read most of them for this already; one that filled a batch, all.
            chunk = self.buffer_at(0)
            rest: cython.Py_ssize_t = chunk.used - self.checked
            records: cython.longlong = crc32c(self.checksum, chunk.base, self.checked, rest)
            return crc32c_combined(checksum, records, chunk.used)
        for at in range(len(self.payload)):
            chunk = self.buffer_at(at)
            size: cython.Py_ssize_t = self.payload_size if self.compressed else chunk.used
            checksum = crc32c(checksum, chunk.base, 0, size)
        return checksum


@cython.cfunc
def new_records(
    chunk: Buffer,
    write_limit: cython.Py_ssize_t,
    codec_id: cython.int,
    compression_ratio: cython.double,
    raw_limit: cython.Py_ssize_t,
) -> RecordsBuilder:
    """See ``RecordsBuilder``."""
    records: RecordsBuilder = RecordsBuilder.__new__(RecordsBuilder)
    records.first_chunk = chunk
    records.further_chunks = None
    records.write_limit = write_limit
    records.raw_limit = raw_limit if raw_limit > 0 else MAX_INT32
    records.codec_id = codec_id
    records.compressed = codec_id != 0
    records.write_to(chunk)
    records.compression_ratio = compression_ratio
    records.raw_size = records.max_record_size = records.checked = records.checksum = 0
    records.payload = NO_PIECES
    records.payload_size = 0
    return records
