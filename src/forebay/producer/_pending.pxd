from forebay._accumulator.topic cimport TopicState
from forebay.producer._path cimport SendPath
from forebay._delivery.future cimport RecordFuture


cdef class PendingSend:
    cdef SendPath path
    cdef object record
    cdef object callback
    cdef str topic
    cdef int partition
    cdef long long timestamp
    cdef TopicState state
    cdef object since
    cdef double begun
    cdef double deadline
    cdef bint is_serialized
    cdef bint awaits_memory
    cdef bytes key
    cdef bytes value
    cdef bytes section
    cpdef bint find_topic(self, object ticket) except? -1
    cdef int prepare(self) except? -1
    cdef RecordFuture append(self, object ticket)
