from forebay._runtime.mutex cimport Mutex


cpdef int key_partition(bytes key, int count) noexcept
cpdef int consistent_partition(bytes key, int count) except? -2


cdef class PartitionRandom:
    cdef unsigned long long state
    cpdef int next(self) noexcept


cdef class BuiltInPartitioner:
    cdef readonly str topic
    cdef readonly Py_ssize_t sticky_size
    cdef readonly Py_ssize_t produced
    cdef readonly int partition
    cdef readonly int count
    cdef readonly tuple available
    cdef tuple weights
    cdef tuple weighted
    cdef object random
    cpdef int peek(self) noexcept
    cpdef int current(self) except? -2
    cpdef bint is_changed(self, int partition) noexcept
    cpdef bint update(self, Py_ssize_t appended, bint enable_switch) except? -1
    cpdef bint set_partitions(self, int count, object available) except? -1
    cpdef void update_stats(self, object queue_sizes, object partitions)
    cpdef int next_partition(self) except? -2
    cpdef void move_to(self, int partition)
    cdef void start_over(self)


cdef class RoundRobinPartitioner:
    cdef Mutex lock
    cdef dict counters


cdef class ConsistentRandomPartitioner:
    cdef object random
