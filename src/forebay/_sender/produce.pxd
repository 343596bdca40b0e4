cdef class ProduceCall:
    cdef readonly int node_id
    cdef readonly int acks
    cdef readonly int timeout_ms
    cdef readonly list batches
    cdef readonly list held
    cdef readonly dict refused
    cdef readonly double drained
    cdef object compressor
    cdef str transactional_id
