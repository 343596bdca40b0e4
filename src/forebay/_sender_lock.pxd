cdef class SenderLock:
    cdef object lock

cpdef bint may_wait() except? -1
