from forebay._transactions.partitions cimport TransactionPartitions
from forebay._transactions.sequences cimport PartitionSequences


cdef class TransactionManager:
    cdef readonly long long producer_id
    cdef readonly int producer_epoch
    cdef readonly object state
    cdef readonly object fatal_error
    cdef readonly bint has_producer_id
    cdef readonly int max_in_flight
    cdef readonly bint confirm_first
    cdef object backoff
    cdef int failures
    cdef double retry_at
    cdef bint asked
    cdef bint refused
    cdef list to_rewrite
    cdef list unresolved
    cdef dict parked
    cdef object session
    cdef readonly TransactionPartitions members
    cpdef void begin_turn(self)
    cpdef bint needs_producer_id(self, double now, bint has_undrained)
    cpdef double time_to_next_request(self, double now, bint has_undrained)
    cpdef bint may_drain(self, object queue, object batch)
    cpdef void stamp(self, object queue, object batch)
    cpdef bint comes_before(self, object batch, object other)
    cpdef void on_completed(self, object batch, long long base_offset)
    cpdef bint can_retry(self, object batch, object error, long long log_start_offset)
    cpdef void on_failed(self, object batch, object error, bint adjust_sequences)
    cpdef void on_split(self, object batch, object children)
    cpdef void park(self, object queue)
    cpdef void fail(self, object error)
    cdef PartitionSequences sequences_of(self, object queue)
    cdef void resolve(self)
    cdef void bump(self)
    cdef void rewrite(self)
    cdef void request_bump(self, PartitionSequences sequences, Py_ssize_t position)
    cdef void enter(self, object target)
