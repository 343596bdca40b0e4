from forebay._parking cimport Parking


cdef class GilClaim:
    cdef public bint waiting
    cdef public int passed
    cdef readonly long long first
    cdef public double since
    cdef double long_at
    cdef double kept_at
    cdef double seen
    cdef double begun
    cdef readonly bint beside
    # Of threads that give way; a turn is the sender's.
    cdef Parking lot
    cpdef double ahead(self) noexcept
    cpdef void begin(self, double now) noexcept nogil
    cpdef void end(self, double now) noexcept
    cpdef bint is_long(self, double now) noexcept
    cpdef void pass_by(self, long long timestamp) noexcept
    cpdef bint give_way_for(self, long nanoseconds, int seen) noexcept
