from forebay._mutex cimport Mutex
from forebay._delivery_callbacks cimport DeliveryCallbacks
from forebay._record_metadata cimport RecordMetadata


cdef class BatchResult:
    # Fields of eight bytes before smaller ones, and small, as in ProducerBatch.
    cdef readonly str topic
    cdef readonly list parts
    # Set by _future_split.
    cdef BatchResult parent
    cdef readonly long long base_offset
    cdef readonly long long log_append_time
    cdef readonly object error
    cdef readonly dict record_errors
    cdef DeliveryCallbacks deliveries
    cdef list callbacks
    cdef list waiters
    cdef object account
    cdef unsigned long completing_thread
    cdef Mutex lock
    cdef readonly int partition
    cdef readonly int record_count
    cdef readonly int first
    cdef int open_parts
    cdef short born
    cdef readonly signed char state
    cpdef bint settle(
        self, long long base_offset, long long log_append_time, object error, dict record_errors, int record_count, object report
    )
    cdef bint run_callbacks(self, object report)
    cdef void run_deliveries(self, DeliveryCallbacks deliveries, object report)
    cdef void tell(self, object raised, object report)
    cdef int deliver_from(self, int at, DeliveryCallbacks calls, object shared, object report) except? -1
    cdef RecordMetadata metadata_of(
        self, int at, long long timestamp, long long key_size, long long value_size, RecordMetadata previous=*
    )
    cdef void wake_waiters(self)
    cdef bint end_part(self, BatchResult part)
    cdef BatchResult leaf(self, int index)
    cdef bint add_late(self, RecordFuture future, object function)
    cpdef bint subscribe(self, object ticket, int index=*)
    cpdef void unsubscribe(self, object ticket, int index=*)
    cpdef object error_of(self, int index)


cdef class RecordFuture:
    cdef readonly BatchResult batch
    cdef readonly int index
    cdef readonly int key_size
    cdef readonly int value_size
    cdef readonly long long timestamp
    cpdef object metadata(self)
    cdef bint is_visible(self)
    cdef void run(self, object function, object report)


cdef RecordFuture new_future()
cdef BatchResult part_with(list parts, int index)
