from forebay._arrow cimport BytesColumn, HeadersColumn, IntColumn, TimestampColumn


cdef class Columns:
    cdef readonly Py_ssize_t length
    cdef readonly str topic
    cdef BytesColumn topics
    cdef BytesColumn keys
    cdef BytesColumn values
    cdef HeadersColumn headers
    cdef IntColumn partitions
    cdef TimestampColumn timestamps
