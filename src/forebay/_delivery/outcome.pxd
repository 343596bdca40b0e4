cimport cython

from forebay._delivery.callbacks cimport DeliveryCallbacks
from forebay._delivery.metadata cimport RecordMetadata


# See StampedBatch.
@cython.no_gc
cdef class BatchOutcome:
    # Fields of eight bytes before smaller ones, and small, as in ProducerBatch.
    cdef readonly str topic
    cdef readonly long long base_offset
    cdef readonly long long log_append_time
    cdef readonly object error
    cdef readonly dict record_errors
    cdef readonly int partition
    cdef short born
    cdef readonly signed char state
    cdef signed char foretold
    cdef void begin_outcome(self, str topic, int partition) noexcept
    cdef bint is_foreign(self) noexcept
    cdef void run_deliveries(self, DeliveryCallbacks deliveries, object report)
    cdef void tell(self, object raised, object report)
    cdef bint is_lost(self, object raised, long long at) except? -1
    cdef void say_lost(self, DeliveryCallbacks calls, Py_ssize_t at)
    cdef int deliver_from(self, int at, DeliveryCallbacks calls, object shared, object report) except? -1
    cdef RecordMetadata metadata_of(self, int at, long long timestamp, long long key_size, long long value_size)
