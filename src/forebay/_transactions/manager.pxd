from forebay.model._gate cimport Gate, GatedQueue, StampedBatch
from forebay._transactions.partitions cimport TransactionPartitions
from forebay._transactions.sequences cimport PartitionSequences


cdef class TransactionManager(Gate):
    cdef readonly long long producer_id
    cdef readonly int producer_epoch
    cdef readonly object state
    cdef readonly object fatal_error
    cdef readonly bint has_producer_id
    cdef readonly int max_in_flight
    cdef readonly bint confirm_first
    cdef object asking                   # when the next request for a producer id is due
    cdef list to_rewrite
    cdef list unresolved
    cdef readonly object dialog
    cdef readonly TransactionPartitions members
    cpdef void begin_turn(self)
    cpdef bint needs_producer_id(self, double now, bint has_undrained)
    cpdef double time_to_next_request(self, double now, bint has_undrained)
    cpdef bint may_drain(self, GatedQueue queue, StampedBatch batch) except -1
    cpdef int stamp(self, GatedQueue queue, StampedBatch batch) except -1
    cpdef bint comes_before(self, StampedBatch batch, StampedBatch other) except -1
    cpdef void on_completed(self, StampedBatch batch, long long base_offset)
    cpdef bint can_retry(self, StampedBatch batch, object error, long long log_start_offset)
    cpdef bint is_written(self, StampedBatch batch, object error) except -1
    cpdef void on_failed(self, StampedBatch batch, object error, bint adjust_sequences)
    cpdef int on_split(self, StampedBatch batch, object children) except -1
    cpdef void fail(self, object error)
    cdef PartitionSequences sequences_of(self, GatedQueue queue)
    cdef void out_of_order(self, PartitionSequences sequences, StampedBatch batch, bint stray)
    cdef void resolve(self)
    cdef void bump(self)
    cdef void rewrite(self)
    cdef void request_bump(self, PartitionSequences sequences, Py_ssize_t position)
    cdef void enter(self, object target)
