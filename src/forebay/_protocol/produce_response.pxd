# What the sender touches of a produce response; semantics in produce_response.py.

cdef class PartitionResponse:
    cdef readonly str topic
    cdef readonly bytes topic_id
    cdef readonly int partition
    cdef readonly int error_code
    cdef readonly long long base_offset
    cdef readonly long long log_append_time
    cdef readonly long long log_start_offset
    cdef readonly list record_errors
    cdef readonly str error_message
    cdef readonly int leader_id
    cdef readonly int leader_epoch


cdef class ProduceResponse:
    cdef readonly int throttle_time_ms
    cdef readonly list partitions
    cdef readonly list node_endpoints


cpdef ProduceResponse decode_produce(int version, object payload)
