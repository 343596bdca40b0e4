from forebay.producer._frontend cimport RecordFuture
cimport cython

from forebay.producer._frontend cimport AddedCallback
from forebay.model._metadata cimport RecordMetadata as NativeMetadata

cdef enum:                 # Call.kind; the interpreted form has it in _calls.py
    ALWAYS = 0
    ON_SUCCESS = 1
    ON_FAILURE = 2

cdef enum:
    DEEPEST = 16           # so many functions of a record call each other; further ones the native future keeps


# See StampedBatch.
@cython.no_gc
cdef class Call(AddedCallback):
    cdef object made                     # the RecordMetadata of the call before, and the numbers in it
    cdef long long timestamp
    cdef int key_size
    cdef int value_size
    cdef signed char depth
    cdef object call(self, NativeMetadata metadata, object error)
    cdef object raised_by(self, NativeMetadata metadata, object error)
    cdef object call_after(self, object earlier, NativeMetadata metadata, object error)
    cdef object located(self, NativeMetadata found)


cdef object record_metadata(NativeMetadata found, Py_ssize_t header_size)
cdef Call new_call(object before, int kind, object function, Py_ssize_t header_size)
