from forebay.producer._frontend cimport TopicState
from forebay.producer._frontend cimport RecordFuture
from forebay.producer._path cimport SendPath


# The loop's thread only.
cdef class BatchBuilder:
    cdef readonly list _records          # tuples of timestamp, key, value and the headers' section
    cdef object _key_serializer
    cdef object _value_serializer
    cdef object _now                     # gives the time in Unix ms
    cdef Py_ssize_t _limit
    cdef Py_ssize_t _size
    cdef long long _first_timestamp
    cdef bint _closed


cdef class PendingBatch:
    cdef SendPath path
    cdef TopicState state
    cdef readonly BatchBuilder builder
    cdef int partition
    cdef double begun
    cdef double deadline
    cpdef RecordFuture step(self, object ticket)
