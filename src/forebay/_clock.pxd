cpdef double monotonic_ms() noexcept nogil


cdef class SystemClock:
    cpdef double now(self) noexcept
    cpdef long long wall(self) noexcept
