cdef double _LONGEST_S


cdef class Ticket:
    cdef public object grant


cdef class ThreadTicket(Ticket):
    cdef object _greenlet, _lock
    cpdef bint wait(self, double timeout_ms) except? -1

