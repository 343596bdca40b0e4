cdef class Column:
    cdef readonly str name
    cdef readonly Py_ssize_t length
    cdef object owner
    cdef size_t validity
    cdef long long offset
    cpdef bint is_null(self, Py_ssize_t row) noexcept


cdef class BytesColumn(Column):
    cdef int layout
    cdef int width
    cdef size_t offsets
    cdef size_t data
    cdef size_t buffers
    cdef BytesColumn values
    cdef const unsigned char* found
    cdef Py_ssize_t seek(self, Py_ssize_t row) noexcept
    cpdef bytes get(self, Py_ssize_t row)


cdef class IntColumn(Column):
    cdef int width
    cdef size_t data
    cpdef long long value(self, Py_ssize_t row) noexcept


cdef class TimestampColumn(Column):
    cdef size_t data
    cdef long long divisor
    cdef long long factor
    cpdef long long millis(self, Py_ssize_t row) except? -1


cdef class HeadersColumn(Column):
    cdef int width
    cdef size_t offsets
    cdef size_t entry_validity
    cdef long long entry_offset
    cdef BytesColumn keys
    cdef BytesColumn values
    cdef bytearray scratch
    cdef unsigned char* encoded
    cdef Py_ssize_t encode(self, Py_ssize_t row) except -1
    cdef Py_ssize_t measure(self, Py_ssize_t row, long long first, long long last) except -1
    cpdef bytes section(self, Py_ssize_t row)


cdef class ArrowBatch:
    cdef readonly Py_ssize_t length
    cdef readonly tuple names
    cdef object owner
    cdef size_t schema
    cdef size_t array
