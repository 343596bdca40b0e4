cdef class RecordMetadata:
    cdef str of_topic
    cdef long long at_offset
    cdef long long at_time
    cdef long long key_size
    cdef long long value_size
    cdef int of_partition
    cpdef tuple as_tuple(self)


cdef object fields_of(object other)
cdef RecordMetadata new_metadata(str topic, int partition)
