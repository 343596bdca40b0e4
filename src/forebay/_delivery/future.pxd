from forebay._runtime.mutex cimport Mutex
from forebay._delivery.callbacks cimport DeliveryCallbacks
from forebay._delivery.outcome cimport BatchOutcome


cdef class BatchResult(BatchOutcome):
    # Fields of eight bytes before smaller ones, and small, as in ProducerBatch.
    cdef readonly list parts
    # Set by _delivery/split.py.
    cdef BatchResult parent
    cdef DeliveryCallbacks deliveries
    cdef list callbacks
    cdef list waiters
    cdef object account
    cdef unsigned long completing_thread
    cdef Mutex lock
    cdef readonly int record_count
    cdef readonly int first
    cdef int open_parts
    cdef begin(self, str topic, int partition, object account, int first)
    cpdef bint settle(
        self, long long base_offset, long long log_append_time, object error, dict record_errors, int record_count, object report
    ) except? -1
    cdef bint run_callbacks(self, object report) except? -1
    cdef int wake_waiters(self) except? -1
    cdef bint end_part(self, BatchResult part) except? -1
    cdef BatchResult leaf(self, int index)
    cdef bint add_late(self, RecordFuture future, object function) except? -1
    cpdef bint subscribe(self, object ticket, int index=*) except? -1
    cpdef void unsubscribe(self, object ticket, int index=*)
    cpdef object error_of(self, int index)
    cpdef bint wait(self, double timeout_ms, int index=*) except? -1


cdef class RecordFuture:
    cdef readonly BatchResult _batch
    cdef readonly int _index
    cdef readonly int _key_size
    cdef readonly int _value_size
    cdef readonly long long _timestamp
    cpdef object metadata(self)
    cdef _error(self, object timeout)
    cdef bint _is_visible(self) noexcept
    cdef void _run(self, object function, object report)


cdef BatchResult new_result(str topic, int partition, object account, int first)
cdef RecordFuture new_future()
cdef BatchResult part_with(list parts, int index)
