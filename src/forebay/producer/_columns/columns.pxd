from forebay._arrow.columns cimport BytesColumn
from forebay._arrow.headers cimport HeadersColumn
from forebay._arrow.numbers cimport IntColumn, TimestampColumn
from forebay._records.rows cimport RowWindow


cdef class Columns:
    cdef readonly Py_ssize_t length
    cdef readonly str topic
    cdef BytesColumn topics
    cdef BytesColumn keys
    cdef BytesColumn values
    cdef HeadersColumn headers
    cdef IntColumn partitions
    cdef TimestampColumn timestamps
    cdef Py_ssize_t fill_bytes(self, RowWindow rows, Py_ssize_t at, Py_ssize_t count) except -1
