cimport cython

from forebay._accumulator.pool cimport Buffer
from forebay._gate cimport StampedBatch


# See StampedBatch.
@cython.no_gc
cdef class ChunkedBatch(StampedBatch):
    # Owned by the queue's lock while the batch is open, by the sender thread afterwards.
    # Where the next record goes, and the chunk that it is in, while the batch is open ...
    cdef unsigned char* base
    cdef Buffer chunk
    cdef int position
    cdef int capacity
    # ... and all there is.
    cdef Buffer first_chunk
    cdef list further_chunks
    cdef void begin_with(self, Buffer chunk) noexcept
    cdef void write_to(self, Buffer chunk) noexcept
    cdef void seal_chunk(self) noexcept
    cdef void go_on_in(self, Buffer chunk, list spare)
    cdef Py_ssize_t buffer_count(self) noexcept
    cdef Buffer buffer_at(self, Py_ssize_t at)
    cdef list written(self)
    cdef list write_over(self, list packed)
    cdef int replace_chunks(self, Buffer buffer) except? -1
    cpdef int hold(self, list held) except? -1
