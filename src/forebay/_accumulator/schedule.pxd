from forebay.model._gate cimport Gate
from forebay._runtime.mutex cimport Mutex
from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.loads cimport PartitionLoads
from forebay._accumulator.lingering cimport ParkedQueues
from forebay._accumulator.topic cimport PartitionQueue


cdef class ReadyNodes:
    cdef public list nodes
    cdef public double next_check
    cdef readonly set leaderless
    cdef readonly list ripe
    cdef note_leaderless(self, str topic)


cdef ReadyNodes no_nodes()


cdef class BatchSchedule:
    cdef Mutex lock
    cdef list announced                  # guarded by lock
    cdef readonly dict nodes
    cdef readonly double linger_ms
    cdef readonly double checked_at
    cdef readonly double delivery_timeout_ms
    cdef readonly bint adaptive
    cdef object backoff
    cdef double next_expiry
    cdef readonly list watched
    cdef readonly ParkedQueues parked
    cdef readonly PartitionLoads loads
    cdef bint all_due                    # set by any thread
    cdef public bint torn                # set by any thread: an announcement was lost (rebuild)
    cdef bint sending_all                # as the last `ready` was told
    cdef int announce(self, PartitionQueue queue) except? -1
    cdef int collect(self) except? -1
    cdef int watch(self, PartitionQueue queue) except? -1
    cdef int sync_containers(self, PartitionQueue queue, int place) except? -1
    cdef int join_line(self, PartitionQueue queue) except? -1
    cpdef void follow_leaders(self)
    cdef void move_memory(self, PartitionQueue queue)
    cpdef ReadyNodes ready(self, double now, bint send_all)
    cdef bint check(self, PartitionQueue queue, double now, ReadyNodes found) except? -1
    cdef double drainable_in(self, PartitionQueue queue, double now) except? -2
    cdef double lingers_until(self, PartitionQueue queue) noexcept
    cdef int wake_parked(self, double now) except? -1
    cdef bint backs_off(self, ProducerBatch batch, double now) noexcept
    cpdef void reenqueue(self, ProducerBatch batch, double now, Gate gate)
    cpdef void put_back(self, ProducerBatch batch, Gate gate)
    cpdef list expired(self, double now)
    cdef void expire(self, PartitionQueue queue, double now, list gone)
    cdef void _expect_expiry(self, ProducerBatch batch) noexcept
    cpdef double next_expiry_at(self) noexcept
    cpdef bint has_undrained(self)
    cpdef void rebuild(self, list queues, list batches, double now, Gate gate)
