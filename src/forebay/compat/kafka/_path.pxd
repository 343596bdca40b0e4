from forebay.compat.kafka._future_callbacks cimport Call
from forebay.producer._frontend cimport TopicState
from forebay.producer._frontend cimport RecordFuture
from forebay.producer._frontend cimport PartitionRandom
from forebay.producer._path cimport SendPath


cdef class FutureRecordMetadata:
    cdef RecordFuture _sent
    cdef Py_ssize_t _header_size
    cdef object _metadata(self)
    cdef int _add(self, int kind, object f, tuple args, dict kwargs) except? -1
    cdef object _add_anew(self, int kind, object function)


cdef class SendingPath:
    cdef readonly SendPath _native
    cdef readonly bint _open
    cdef bint _converts                  # keys or values go through a serializer
    cdef object _key_of_data             # at most one of the two is there, as of a BoundSerializer
    cdef object _key_of_record
    cdef object _value_of_data
    cdef object _value_of_record
    cdef object _choose                  # the program's partitioner, or None
    cdef bint _spreads                   # records without a key go to random partitions
    cdef PartitionRandom _draw           # a random number, 0 to 2^31 - 1
    cdef FutureRecordMetadata send_bytes(
        self,
        object topic,
        object value,
        object key,
        object value_bytes,
        object key_bytes,
        object headers,
        object partition,
        object timestamp_ms,
    )
    cdef object number_for(
        self, TopicState state, object value, object key, object value_bytes, object key_bytes, object partition
    )
