cimport cython
from forebay._delivery.callbacks cimport CompiledCallback
from forebay.model._metadata cimport DeliveryReport, RecordMetadata


@cython.no_gc
cdef class Acknowledged(CompiledCallback):
    cdef readonly object chain
    cdef readonly object callback
    # The partition of a record that send_nowait refuses.
    cdef public object where
    cdef readonly object headers
    cpdef object note_headers(self, object headers)
    cpdef object headers_of(self, object headers)
