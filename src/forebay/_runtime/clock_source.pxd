# The clocks without a Python call, for forebay._runtime.clock alone.  Interpreted twin: clock_source.py.

from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, timespec

cdef extern from "ticks.h" nogil:
    # A tick is a nanosecond or less.  Only differences have a meaning, and only where ticks are steady.
    unsigned long long ticks "forebay_ticks" () noexcept
    bint ticks_are_steady "forebay_ticks_are_steady" () noexcept


cdef inline long long monotonic_ns() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return t.tv_sec * <long long>1000000000 + t.tv_nsec


cdef inline long long wall_ns() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_REALTIME, &t)
    return t.tv_sec * <long long>1000000000 + t.tv_nsec
