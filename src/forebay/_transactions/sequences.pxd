from forebay.model._gate cimport StampedBatch


cpdef int increment_sequence(long long sequence, long long by) noexcept
cpdef int decrement_sequence(long long sequence, long long by) noexcept
cpdef bint is_later(long long sequence, long long other) noexcept


cdef class PartitionSequences:
    cdef readonly str topic
    cdef readonly int partition
    cdef readonly bint transactional
    cdef readonly long long producer_id
    cdef readonly int producer_epoch
    cdef readonly int next_sequence
    cdef readonly int last_acked_sequence
    cdef readonly long long last_acked_offset
    cdef readonly bint unresolved
    cdef readonly int gap
    cdef public bint bump_requested
    cdef public long long asked_in
    cdef public long long added_in
    cdef public bint forgotten
    cdef readonly int confirmed_for
    cdef readonly list in_flight
    cdef readonly list rewritten
    cdef list ordinals
    cdef Py_ssize_t missed
    cdef int asked_leader
    cdef bint turned
    cdef bint overtaking
    cdef int given_up
    cdef readonly bint skipped
    cdef long long stamped
    cpdef bint is_stamped_by(self, long long producer_id, int producer_epoch) noexcept
    cpdef bint accepts_new(self, Py_ssize_t limit)
    cpdef bint is_fresh(self, int incarnation) noexcept
    cpdef bint is_stray(self, StampedBatch batch) noexcept
    cdef bint goes_in_order(self) noexcept
    cpdef bint is_lowest(self, StampedBatch batch)
    cpdef bint is_expected(self, int sequence) noexcept
    cpdef bint is_overtaken(self, StampedBatch batch)
    cpdef Py_ssize_t position(self, StampedBatch batch)
    cpdef void start(self, long long producer_id, int producer_epoch, int next_sequence)
    cpdef void assign(self, StampedBatch batch)
    cpdef bint forget_rewrite(self, StampedBatch batch)
    cpdef bint was_rewritten(self, StampedBatch batch)
    cpdef bint drop(self, StampedBatch batch)
    cpdef void acknowledge(self, StampedBatch batch, long long base_offset)
    cdef void note_room(self, StampedBatch batch, long long base_offset)
    cpdef void replace(self, StampedBatch batch, object children)
    cpdef Py_ssize_t put_last(self, StampedBatch batch) except -1
    cpdef bint turn(self, int leader_epoch) except -1
    cpdef void interrupt(self) noexcept
    cpdef Py_ssize_t ahead_of_gap(self, Py_ssize_t position)
    cpdef bint note_gap(self, Py_ssize_t position) noexcept
    cpdef void mark_unresolved(self, StampedBatch batch) noexcept
    cpdef void resolve(self) noexcept
    cpdef void rewrite(self, long long producer_id, int producer_epoch)
