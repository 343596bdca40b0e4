from forebay._arrow.columns cimport Column


cdef class IntColumn(Column):
    cdef int width
    cdef bint unsigned
    cdef long long stride
    cdef size_t data
    cpdef long long value(self, Py_ssize_t row) noexcept
    cpdef object exact(self, Py_ssize_t row)
    cdef Py_ssize_t fill(self, Py_ssize_t row, Py_ssize_t count, long long absent, long long most, long long* to) noexcept nogil


cdef class TimestampColumn(Column):
    cdef size_t data
    cdef long long stride
    cdef long long divisor
    cdef long long factor
    cdef bint has_nat
    cpdef bint is_null(self, Py_ssize_t row) noexcept
    cpdef long long millis(self, Py_ssize_t row) except? -1
    cdef Py_ssize_t fill(self, Py_ssize_t row, Py_ssize_t count, long long absent, long long* to) noexcept nogil


cpdef IntColumn int_column(str name, size_t schema, size_t array, long long shift, object owner)
cpdef TimestampColumn timestamp_column(str name, size_t schema, size_t array, long long shift, object owner)
