from forebay._arrow.columns cimport BytesColumn
from forebay._arrow.headers cimport HeadersColumn
from forebay._arrow.numbers cimport IntColumn, TimestampColumn


cdef class Columns:
    cdef readonly Py_ssize_t length
    cdef readonly str topic
    cdef BytesColumn topics
    cdef BytesColumn keys
    cdef BytesColumn values
    cdef HeadersColumn headers
    cdef IntColumn partitions
    cdef TimestampColumn timestamps
