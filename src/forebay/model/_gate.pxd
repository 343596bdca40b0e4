cimport cython

from forebay._runtime.flag cimport Flag


cdef class GatedQueue:
    cdef readonly str topic
    cdef public object gate_state
    cdef readonly int partition


# Here too: a subclass elsewhere has the collector's head if it cannot see that its base has none.
@cython.no_gc
cdef class StampedBatch:
    cdef readonly GatedQueue queue
    cdef readonly long long producer_id
    cdef readonly int record_count
    cdef readonly int base_sequence
    cdef public int incarnation
    cdef public int stamped_for
    cdef readonly int leader_epoch
    cdef readonly short producer_epoch
    cdef readonly Flag transactional
    cdef public Flag by_name
    cpdef int set_producer_state(
        self, long long producer_id, int producer_epoch, int base_sequence, bint transactional
    ) except -1
    cpdef bint has_sequence(self) noexcept


cdef class Gate:
    cpdef bint may_drain(self, GatedQueue queue, StampedBatch batch) except -1
    cpdef int stamp(self, GatedQueue queue, StampedBatch batch) except -1
    cpdef bint comes_before(self, StampedBatch batch, StampedBatch other) except -1
    cpdef int on_split(self, StampedBatch batch, object children) except -1
