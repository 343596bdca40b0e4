from forebay._delivery.metadata cimport RecordMetadata
cimport cython

from forebay._delivery.callbacks cimport CompiledCallback


@cython.no_gc
cdef class Acknowledged(CompiledCallback):
    cdef readonly object chain
    cdef readonly object callback
    # The partition of a record that send_nowait refuses.
    cdef public object where
    cdef readonly object headers
    cpdef object note_headers(self, object headers)
    cpdef object headers_of(self, object headers)


cdef str plain_name(object topic)
cpdef int checked_partition(object partition) except? -1
cpdef long long checked_timestamp(object timestamp_ms) except? -1
cpdef list listed_headers(object headers)
cpdef list checked_headers(object headers)
