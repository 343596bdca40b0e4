from forebay._mutex cimport Mutex


cdef class CompressionRatioEstimator:
    cdef Mutex lock
    cdef dict ratios
