cpdef double monotonic_ms() noexcept nogil


cdef class SystemClock:
    cdef bint steady
    cdef long long wall_ms
    cdef unsigned long long read_at
    cdef unsigned long long valid
    cpdef double now(self) noexcept
    cpdef long long wall(self) noexcept
