cimport cython

from forebay._accumulator.pool cimport Buffer
from forebay._records.rows cimport RowWindow
from forebay._runtime.flag cimport Flag
from forebay._runtime.primitives cimport RecordPointer


# Guarded by the queue's lock while the batch takes records.  Afterwards they belong to the thread that closes the batch,
# then to the sender's thread.
@cython.no_gc
cdef class RecordsBuilder:
    # What every append touches comes first: with thousands of partitions each line of the processor's cache comes from
    # memory.  Fields of eight bytes stand before smaller ones, so that there are no gaps, and none is larger than it need
    # be: there are as many builders as batches that wait.  Sizes of records are int32 in the protocol, too.
    cdef unsigned char* base             # the memory that the next record goes to, in ``chunk``
    cdef Buffer chunk
    cdef int position
    cdef int capacity
    cdef readonly long long base_timestamp
    cdef readonly long long max_timestamp
    cdef readonly int write_limit
    cdef readonly int raw_size
    cdef readonly int max_record_size
    cdef readonly int raw_limit
    cdef readonly double compression_ratio
    cdef readonly Flag compressed
    cdef readonly signed char codec_id
    cdef int checked                     # bytes of records that ``checksum`` (CRC-32C) covers, without compression
    cdef unsigned int checksum
    cdef Buffer first_chunk              # all chunks, or the one buffer with the compressed records
    cdef list further_chunks
    cdef readonly list payload
    cdef readonly Py_ssize_t payload_size  # what does not compress may be more than its records, which an int32 holds
    cdef Py_ssize_t write(self, RecordPointer record, int count) noexcept
    cdef Py_ssize_t write_large(self, RecordPointer record) noexcept
    cdef void add(self, Py_ssize_t size, long long timestamp) noexcept
    cdef Py_ssize_t write_rows(self, RowWindow rows, Py_ssize_t at, Py_ssize_t until, int count)
    cdef Py_ssize_t raw_room(self) noexcept
    cdef Py_ssize_t room(self) noexcept
    cdef bint grow(self, Py_ssize_t size) noexcept
    cdef Py_ssize_t room_for(self, Py_ssize_t size) noexcept
    cdef bint lacks_chunk(self, RecordPointer record, int count) noexcept
    cpdef Py_ssize_t estimated_size(self) noexcept
    cdef bint is_full(self) noexcept
    cdef void write_to(self, Buffer chunk) noexcept
    cdef void go_on_in(self, Buffer chunk, list spare)
    cdef Py_ssize_t buffer_count(self) noexcept
    cdef Buffer buffer_at(self, Py_ssize_t at)
    cpdef int hold(self, list held) except? -1
    cdef list written(self)
    cdef void check_ahead(self) noexcept
    cdef int keep(self) except? -1
    cdef Buffer keep_packed(self, list packed)
    cdef bint write_over(self, list packed) except? -1
    cdef int replace_chunks(self, Buffer buffer) except? -1
    cdef int release(self) except? -1
    cpdef double observed_ratio(self) noexcept
    cdef long long checksum_after(self, long long checksum)


cdef RecordsBuilder new_records(
    Buffer chunk, Py_ssize_t write_limit, int codec_id, double compression_ratio, Py_ssize_t raw_limit
)
