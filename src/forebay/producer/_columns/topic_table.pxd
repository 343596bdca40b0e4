from forebay._accumulator.topic cimport TopicState
from forebay._arrow.columns cimport BytesColumn
from forebay._records.rows cimport RowWindow


cdef class TopicTable:
    cdef readonly list states
    cdef dict numbers
    cdef list names
    cdef const unsigned char** cells
    cdef long long* sizes
    cdef long long* known
    cdef long long* counts
    cdef Py_ssize_t counts_size
    cdef Py_ssize_t none
    cdef Py_ssize_t add(self, bytes name, TopicState state) except -1
    cdef void remember(self, bytes name)
    cdef Py_ssize_t find(self, const unsigned char* cell, Py_ssize_t size) noexcept nogil
    cdef void count_partitions(self)
    cdef Py_ssize_t assign(self, BytesColumn column, RowWindow rows, Py_ssize_t row, Py_ssize_t count)
    cdef Py_ssize_t number_rows(self, RowWindow rows, Py_ssize_t first, Py_ssize_t count) noexcept nogil
