from forebay._delivery.callbacks cimport DeliveryCallbacks
from forebay.model._metadata cimport RecordMetadata
from forebay._runtime.ticket cimport ThreadTicket
from forebay._delivery.result cimport BatchResult


cdef class RecordFuture:
    cdef readonly BatchResult _batch
    cdef readonly int _index
    cdef readonly int _key_size
    cdef readonly int _value_size
    cdef readonly long long _timestamp
    cpdef object metadata(self)
    cdef _error(self, object timeout)
    cdef bint _is_visible(self) noexcept


cdef RecordFuture new_future()
cpdef bint wait_for(BatchResult result, double timeout_ms, int index=*) except? -1
