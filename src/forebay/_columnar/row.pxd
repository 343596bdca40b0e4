from forebay._accumulator.topic cimport TopicState
from forebay._columnar.columns cimport Columns
from forebay._columnar.deliveries cimport Deliveries
from forebay._future cimport RecordFuture
from forebay._send cimport SendPath


cdef class RowAppender:
    cdef SendPath path
    cdef Columns columns
    cdef Deliveries deliveries
    cdef RecordFuture probe
    cdef TopicState state
    cdef bytes topic_name
    cdef dict states
    cdef long long wall
    cdef int append(self, Py_ssize_t at, Py_ssize_t row)
    cdef void note(
        self, Py_ssize_t row, long long timestamp, Py_ssize_t key_size, Py_ssize_t value_size, Py_ssize_t headers_size
    )
    cdef int partition_given(self, Py_ssize_t at) except? -2
    cdef long long timestamp_of(self, Py_ssize_t at) except? -1
    cdef TopicState topic_of(self, Py_ssize_t at, int number)
