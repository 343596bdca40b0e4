from forebay._transactions.sequences cimport PartitionSequences


cdef class TransactionPartitions:
    cdef readonly long long transaction
    cdef readonly bint implicit
    cdef public bint started
    cdef readonly dict fresh
    cdef dict asked
    cdef readonly list damaged
    cpdef bint admits(self, PartitionSequences sequences)
    cpdef bint can_retry(
        self, PartitionSequences sequences, Py_ssize_t position, object error, long long log_start_offset
    )
    cpdef void lose(self, PartitionSequences sequences, object batch, object error, bint refused)
    cpdef void note_damage(self, PartitionSequences sequences)
