cimport cython


@cython.final
cdef class Sensor:
    cdef readonly double total
    cdef readonly long long count
    cdef readonly double born
    cdef double maximum
    cdef double base_total
    cdef long long base_count
    cdef double opened
    cdef list closed
    cpdef void record(self, double value) noexcept
    cpdef void record_many(self, double total, long long count, double maximum) noexcept
