cdef class RecordMetadata:
    cdef str _topic
    cdef long long _offset
    cdef long long _timestamp
    cdef long long _key_size
    cdef long long _value_size
    cdef int _partition
    cpdef tuple as_tuple(self)


cdef class DeliveryReport:
    cdef RecordMetadata _metadata
    cdef object _error


cdef object fields_of(object other)
cdef RecordMetadata new_metadata(str topic, int partition)
cdef DeliveryReport new_report(RecordMetadata metadata, object error)
cdef DeliveryReport next_report(DeliveryReport before, str topic, int partition, object error)
