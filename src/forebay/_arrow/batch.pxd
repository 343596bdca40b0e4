from forebay._arrow.columns cimport BytesColumn, Column
from forebay._arrow.headers cimport HeadersColumn
from forebay._arrow.numbers cimport IntColumn, TimestampColumn


cdef class ArrowBatch:
    cdef readonly Py_ssize_t length
    cdef readonly tuple names
    cdef object owner
    cdef size_t schema
    cdef size_t array


cdef Py_ssize_t first_null(size_t validity, long long offset, Py_ssize_t length) noexcept nogil
