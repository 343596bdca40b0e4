from forebay._gate cimport Gate
from forebay._mutex cimport Mutex
from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.loads cimport PartitionLoads
from forebay._accumulator.parking cimport ParkedQueues
from forebay._accumulator.ready_nodes cimport ReadyNodes
from forebay._accumulator.topic cimport PartitionQueue


cdef class BatchSchedule:
    cdef Mutex lock
    cdef list activated
    cdef readonly dict nodes
    cdef readonly double linger_ms
    cdef readonly double looked_at
    cdef readonly double delivery_timeout_ms
    cdef readonly bint adaptive
    cdef object backoff
    cdef double next_expiry
    cdef long long drains
    cdef bint dropped
    cdef readonly list watched
    cdef ParkedQueues parked
    cdef readonly PartitionLoads loads
    cdef bint all_due                    # set by any thread
    cdef public bint torn                # set by any thread: what is scheduled is not known any more (mending)
    cdef bint sending_all                # as the last `ready` was told
    cdef readonly bint more
    cdef readonly bint cut_short
    cdef readonly double behind_check
    cpdef int activate(self, PartitionQueue queue) except? -1
    cdef void unpark(self, PartitionQueue queue)
    cdef int watch(self, PartitionQueue queue) except? -1
    cdef int collect(self) except? -1
    cdef int join_line(self, PartitionQueue queue) except? -1
    cpdef void follow_leaders(self)
    cdef void move_memory(self, PartitionQueue queue)
    cpdef ReadyNodes ready(self, double now, bint send_all)
    cdef bint look_at(self, PartitionQueue queue, double now, ReadyNodes found) except? -1
    cdef double wait_of(self, PartitionQueue queue, double now, bint park) except? -2
    cdef int look_behind(self, PartitionQueue queue, double now) except? -1
    cdef int wake(self, PartitionQueue queue) except? -1
    cdef int wake_parked(self, double now) except? -1
    cpdef list drain(self, int node_id, Py_ssize_t max_size, double now, Gate gate)
    cdef ProducerBatch take(self, PartitionQueue queue, Py_ssize_t room, double now, Gate gate)
    cdef bint backs_off(self, ProducerBatch batch, double now) noexcept
    cpdef void reenqueue(self, ProducerBatch batch, double now, Gate gate)
    cpdef void put_back(self, ProducerBatch batch, Gate gate)
    cpdef list expired(self, double now)
    cdef void expire(self, PartitionQueue queue, double now, list gone)
    cdef void _expect_expiry(self, ProducerBatch batch) noexcept
    cpdef double next_expiry_at(self) noexcept
    cpdef bint has_undrained(self)
