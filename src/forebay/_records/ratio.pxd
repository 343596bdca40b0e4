from forebay._runtime.mutex cimport Mutex


cdef class CompressionRatioEstimator:
    cdef Mutex lock
    cdef dict ratios
