cdef class GilClaim:
    cdef public bint waiting
    cdef public int passed
    cdef readonly long long first
    cpdef void pass_by(self, long long timestamp) noexcept
