cimport cython

from forebay._delivery.callbacks cimport DeliveryCallbacks
from forebay.model._metadata cimport DeliveryReport, RecordMetadata
from forebay._runtime.mutex cimport Mutex

cdef enum:                 # BatchResult.state; the interpreted form has it in result.py
    PENDING = 0
    COMPLETING = 1
    DONE = 2


# See StampedBatch.
@cython.no_gc
cdef class BatchResult:
    # Fields of eight bytes before smaller ones, and small, as in ProducerBatch.
    cdef readonly str topic
    cdef readonly long long base_offset
    cdef readonly long long log_append_time
    cdef readonly object error
    cdef readonly dict record_errors
    cdef readonly list parts
    cdef BatchResult parent
    cdef DeliveryCallbacks deliveries
    cdef DeliveryCallbacks added
    cdef list callbacks
    cdef list waiters
    cdef object account
    # Of a result that fails; which of its records somebody has heard of.
    cdef object mark
    cdef unsigned long completing_thread
    cdef Mutex lock
    cdef readonly int record_count
    cdef readonly int first
    cdef int open_parts
    cdef readonly int partition
    cdef short forks
    cdef readonly signed char state
    cdef signed char settled_early
    # All its records have one future.
    cdef public signed char is_whole
    cdef void begin(self, str topic, int partition, object account, int first) noexcept
    cdef bint is_foreign(self) noexcept
    cpdef bint settle(
        self, long long base_offset, long long log_append_time, object error, dict record_errors, int record_count, object report
    ) except? -1
    cpdef bint settle_early(
        self, long long base_offset, long long log_append_time, object error, int record_count
    ) except? -1
    cdef void run_deliveries(self, DeliveryCallbacks calls, object report)
    cdef int deliver_from(self, int at, DeliveryCallbacks calls, object shared, object report) except? -1
    cdef void note_lost(self, DeliveryCallbacks calls, Py_ssize_t at)
    cdef bint run_callbacks(self, object report) except? -1
    cdef void report_raised(self, object raised, object report)
    cdef int wake_waiters(self) except? -1
    cdef int tell_whole(self) except? -1
    cdef bint end_part(self, BatchResult part) except? -1
    cdef BatchResult leaf(self, int index)
    cdef bint add_callback(self, int index, object future, object function) except? -1
    cpdef bint subscribe(self, object ticket, int index=*) except? -1
    cpdef void unsubscribe(self, object ticket, int index=*)
    cdef object error_of(self, int index)
    cdef RecordMetadata metadata_of(self, int at, long long timestamp, long long key_size, long long value_size)


cdef int process_number() noexcept
cdef BatchResult new_result(str topic, int partition, object account, int first)
cdef BatchResult part_with(list parts, int index)
