cdef class SenderLock:
    cdef object lock


cdef class Hold:
    cdef object lock
    cdef double timeout_s
    cdef bint held


cpdef bint may_wait() except? -1
cpdef int check_wait(str call) except? -1
