from forebay._accumulator.accumulator cimport RecordAccumulator


cdef class BatchOutcomes:
    cdef RecordAccumulator accumulator
    cdef object metadata
    cdef object client
    cdef object transactions
    cdef object metrics
    cdef object log
    cdef object report
    cdef int retries
    cdef double delivery_timeout_ms
