cpdef double monotonic_ms() noexcept nogil


cdef class Clock:
    cpdef double now(self) except? -1
    cpdef long long wall(self) except? -1


cdef class SystemClock(Clock):
    cdef bint steady
    cdef long long wall_ms
    cdef unsigned long long read_at
    cdef unsigned long long valid
    cpdef double now(self) except? -1
    cpdef long long wall(self) except? -1
