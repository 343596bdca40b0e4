# Threads sleep until a turn wakes them.  Each turn wakes the thread that has slept longest.  As a field of a compiled
# class it begins as zero: no thread sleeps.  Interpreted twin: _runtime/parking.py.

cdef extern from "parking.h" nogil:
    ctypedef struct Parking "forebay_parking":
        pass
    # Macros that take the place itself, not a copy.
    int asleep_in "forebay_asleep" (Parking lot) noexcept
    int turn_of "forebay_turn_of" (Parking lot) noexcept
    bint park "forebay_park" (Parking lot, int seen, long nanoseconds) noexcept
    void next_turn "forebay_next_turn" (Parking lot) noexcept
