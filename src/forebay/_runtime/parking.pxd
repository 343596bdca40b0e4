# Where threads sleep until it is their turn; each turn wakes the one that has slept longest.  As an attribute of a
# compiled class it begins with nobody, by being zero.  Interpreted twin: _runtime/parking.py.

cdef extern from "parking.h" nogil:
    ctypedef struct Parking "forebay_parking":
        pass
    # Macros that take the place itself, not a copy.
    int asleep_in "forebay_asleep" (Parking lot) noexcept
    int turn_of "forebay_turn_of" (Parking lot) noexcept
    bint park "forebay_park" (Parking lot, int seen, long nanoseconds) noexcept
    void next_turn "forebay_next_turn" (Parking lot) noexcept
