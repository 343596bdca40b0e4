from forebay._delivery.result cimport BatchResult


cdef class RowShare:
    cdef readonly BatchResult result
    cdef readonly Py_ssize_t rows
    cdef readonly long long base_timestamp
    cdef bint counted
    cdef int first_index
    cdef int last_index
    # The latest run of adjacent rows: its index in the batch, its first row, its length.
    cdef int index
    cdef Py_ssize_t row
    cdef Py_ssize_t count
    cdef object runs
    cdef bytearray numbers
    cdef void add(self, int index, Py_ssize_t row, Py_ssize_t count)
    cdef void add_scattered(self, int index, Py_ssize_t row, long long* order, Py_ssize_t at, Py_ssize_t until)
    cdef void end_run(self)
    cpdef int unfinished_index(self)


cdef bint is_over(BatchResult result)
