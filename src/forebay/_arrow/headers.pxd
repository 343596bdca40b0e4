from forebay._arrow.columns cimport BytesColumn, Column
from forebay._arrow.abi cimport CellSource


cdef class HeadersColumn(Column):
    cdef int width
    cdef size_t offsets
    cdef size_t ends
    cdef bint relative
    cdef object counted
    cdef size_t entry_validity
    cdef long long entry_offset
    cdef BytesColumn keys
    cdef BytesColumn values
    cdef BytesColumn sections
    cdef CellSource* key_source
    cdef CellSource* value_source
    cdef CellSource* section_source
    cdef long long first
    cdef long long last
    cdef void find(self, Py_ssize_t row) noexcept nogil
    cdef Py_ssize_t size_of(self, Py_ssize_t row) noexcept nogil
    cdef Py_ssize_t write(self, Py_ssize_t row, unsigned char* to, Py_ssize_t at) noexcept nogil
    cdef Py_ssize_t measure(self, Py_ssize_t row, Py_ssize_t count, Py_ssize_t most, long long* sizes) noexcept nogil
    cpdef bytes section(self, Py_ssize_t row)


cpdef HeadersColumn headers_column(str name, size_t schema, size_t array, long long shift, object owner)
