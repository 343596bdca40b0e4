from forebay._arrow.abi cimport CellSource


cdef class Column:
    cdef readonly str name
    cdef readonly Py_ssize_t length
    cdef object owner
    cdef size_t validity
    cdef long long offset
    cpdef bint is_null(self, Py_ssize_t row) noexcept
    cpdef void advance(self, Py_ssize_t rows)


cdef class BytesColumn(Column):
    cdef CellSource* source
    cdef BytesColumn child
    cdef list held
    cdef const unsigned char** addresses
    cdef long long* sizes
    cdef Py_ssize_t seek(self, Py_ssize_t row) noexcept
    cdef const unsigned char* found(self) noexcept
    cpdef bytes get(self, Py_ssize_t row)


cdef Py_ssize_t seek_cell(CellSource* source, Py_ssize_t row) noexcept nogil
cpdef BytesColumn bytes_column(str name, size_t schema, size_t array, long long shift, object owner)
