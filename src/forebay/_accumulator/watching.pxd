from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.pool cimport Buffer
from forebay._accumulator.records cimport RecordsBuilder
from forebay._runtime.clock cimport Clock
from forebay._runtime.mutex cimport Mutex


cdef class BatchWatch:
    cdef Clock clock
    cdef int every
    cdef readonly bint is_over           # any thread reads it
    cdef Mutex lock                      # guards the next four
    cdef list done                       # four values for each batch
    cdef readonly long long room
    cdef readonly long long left_out_batches
    cdef readonly long long left_out_records
    cdef readonly long long ahead_us     # the wall clock's, over the monotonic one
    cdef readonly dict open              # of each batch without an outcome: when it was closed, and its columns
    cdef readonly dict topics            # their numbers; the sender's thread adds
    cdef readonly long long begun_us     # times of batches are counted from here
    cdef readonly object failure         # the last error, if there was one
    cdef bint takes(self, Py_ssize_t size, int records) except? -1
    cdef object note(self, ProducerBatch batch)
    cdef bytes row(self, ProducerBatch batch, long long kept, long long closed_us, long long ended_us, int outcome)
    cdef object end(self, ProducerBatch batch, int outcome, long long now_us)


cpdef Py_ssize_t room_of(Py_ssize_t records) noexcept
cdef Py_ssize_t after_varint(unsigned char* base, Py_ssize_t at) noexcept nogil
cdef long long varint_at(unsigned char* base, Py_ssize_t at) noexcept nogil
cdef bint lacks_moment(long long first_ms, long long last_ms, int every) noexcept nogil
cdef void put_sizes(
    unsigned char* to, Py_ssize_t count, Py_ssize_t at, unsigned char* base, Py_ssize_t inside
) noexcept nogil
cdef Py_ssize_t walk(
    RecordsBuilder records,
    Py_ssize_t count,
    unsigned char* to,
    long long created_us,
    long long closed_us,
    long long step_us,
    long long ahead_us,
    int every,
) except? -1
cdef tuple columns_of(
    RecordsBuilder records, ProducerBatch batch, long long closed_us, long long ahead_us, int every
)
