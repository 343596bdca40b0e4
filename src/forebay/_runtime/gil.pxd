from forebay._runtime.parking cimport Parking


cdef class GilClaim:
    cdef public bint waiting
    cdef readonly int passed
    cdef readonly double since
    cdef Parking lot                     # the threads that give way; each turn of the sender wakes one
    cpdef void begin(self, double now) noexcept nogil
    cpdef void end(self) noexcept
    cpdef bint pass_by(self) noexcept
    cpdef void give_way(self, double now) noexcept
