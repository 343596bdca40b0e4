from forebay._delivery.future cimport RecordFuture
from forebay.producer._columns.row_share cimport RowShare
from forebay._delivery.result cimport BatchResult


# The fields of a call belong to its thread while it lasts; then ``_lock`` guards what outcomes change.
cdef class BatchDelivery:
    cdef readonly Py_ssize_t rows
    cdef Py_ssize_t _counted
    cdef Py_ssize_t _lost
    cdef Py_ssize_t _ended
    cdef readonly long long raw_bytes
    cdef object _lock
    cdef object _watch
    cdef dict _offsets
    cdef list _failed_runs
    # With rows that failed, of which nobody has heard.
    cdef list _unheard
    cdef list _shares
    cdef list _callbacks
    cdef object _runner
    cdef dict _by_result
    cdef list _latest
    cdef Py_ssize_t _collect_at
    cdef Py_ssize_t _seen
    cdef list _missing
    cdef bint _collecting
    cpdef void _trim(self)
    cpdef Py_ssize_t _collect(self) except -1
    cdef void _count(self, RowShare share)
    cdef RowShare _share_of(self, BatchResult result, long long timestamp)
