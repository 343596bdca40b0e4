cdef class GilClaim:
    cdef public bint waiting
    cdef public int passed
    cdef readonly long long first
    cdef public double since
    cdef public double lasted
    cpdef double early(self, double timeout_ms) noexcept nogil
    cpdef void begin(self, double now) noexcept nogil
    cpdef void end(self, double now) noexcept
    cpdef void pass_by(self, long long timestamp) noexcept
