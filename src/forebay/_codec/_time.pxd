# The clocks without a Python call; twin: _time.py.  For forebay._clock alone.

from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, timespec


cdef inline long long monotonic_ns() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return t.tv_sec * <long long>1000000000 + t.tv_nsec


cdef inline long long wall_ns() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_REALTIME, &t)
    return t.tv_sec * <long long>1000000000 + t.tv_nsec
