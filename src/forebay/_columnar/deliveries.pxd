from forebay._future cimport BatchResult


cdef class Share:
    cdef BatchResult result
    cdef Py_ssize_t rows
    cdef Py_ssize_t first_row
    cdef long long base_timestamp
    cdef int run_first
    cdef int run_rows
    cdef list runs
    cdef void add(self, int index, int count)


# Used by one caller's thread alone.
cdef class Deliveries:
    cdef readonly Py_ssize_t rows
    cdef readonly Py_ssize_t acknowledged
    cdef readonly Py_ssize_t failed
    cdef readonly Py_ssize_t batches
    cdef readonly long long raw_bytes
    cdef readonly object first_error
    cdef readonly Py_ssize_t first_failed_row
    cdef readonly dict partitions
    cdef list shares
    cdef dict by_result
    cdef list latest
    cdef Share share_of(self, BatchResult result, Py_ssize_t row, long long timestamp)
    cdef void _count_rows(self, BatchResult result, Py_ssize_t rows, Py_ssize_t first_row)
