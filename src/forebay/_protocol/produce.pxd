# What the sender touches of a produce request; semantics in produce.py.

cdef class PartitionRecords:
    cdef readonly str topic
    cdef readonly bytes topic_id
    cdef readonly int partition
    cdef readonly bytes header
    cdef readonly list buffers
    cdef readonly Py_ssize_t size


cpdef list encode_produce(int version, str transactional_id, int acks, int timeout_ms, list[PartitionRecords] entries)
