from forebay._columnar.shares cimport Share
from forebay._future cimport BatchResult
from forebay._ticket cimport Latch


# The fields of a call belong to its thread while it lasts; then ``lock`` guards what outcomes change.
cdef class BatchDelivery:
    cdef readonly Py_ssize_t rows
    cdef Py_ssize_t counted
    cdef Py_ssize_t lost
    cdef Py_ssize_t ended
    cdef readonly long long raw_bytes
    cdef object lock
    cdef Latch watch
    cdef dict offsets
    cdef list failed_runs
    cdef list shares
    cdef list callbacks
    cdef object runner
    cdef dict by_result
    cdef list latest
    cdef Py_ssize_t collect_at
    cdef Py_ssize_t seen
    cdef list missing
    cdef bint collecting
    cpdef void trim(self)
    cpdef Py_ssize_t collect(self) except -1
    cdef Py_ssize_t count_ended(self) except -1
    cdef void count(self, Share share)
    cdef Share share_of(self, BatchResult result, long long timestamp)
