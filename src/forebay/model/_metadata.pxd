cdef class RecordMetadata:
    cdef str _topic
    cdef long long _offset
    cdef long long _timestamp
    cdef long long _key_size
    cdef long long _value_size
    cdef int _partition
    cpdef tuple as_tuple(self)


cdef object fields_of(object other)
cdef RecordMetadata new_metadata(str topic, int partition)
