from forebay._gate cimport Gate
from forebay._mutex cimport Mutex
from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.loads cimport PartitionLoads
from forebay._accumulator.parking cimport ParkedQueues
from forebay._accumulator.topic cimport PartitionQueue


cdef class ReadyNodes:
    cdef readonly list nodes
    cdef readonly double next_check
    cdef readonly set unknown_leader_topics


cdef class BatchSchedule:
    cdef Mutex lock
    cdef list activated
    cdef readonly dict nodes
    cdef readonly double linger_ms
    cdef readonly double looked_at
    cdef public double ahead_ms
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
    cpdef void activate(self, PartitionQueue queue)
    cdef void unpark(self, PartitionQueue queue)
    cdef void watch(self, PartitionQueue queue)
    cdef void collect(self)
    cdef void join_line(self, PartitionQueue queue)
    cpdef void follow_leaders(self)
    cdef void move_memory(self, PartitionQueue queue)
    cpdef ReadyNodes ready(self, double now, bint send_all)
    cdef bint look_at(self, PartitionQueue queue, double now, ReadyNodes found)
    cdef double wait_of(self, PartitionQueue queue, double now, bint park) except? -2
    cdef void look_behind(self, PartitionQueue queue, double now)
    cdef void wake(self, PartitionQueue queue)
    cdef void wake_parked(self, double now)
    cpdef list drain(self, int node_id, Py_ssize_t max_size, double now, Gate gate)
    cdef ProducerBatch take(self, PartitionQueue queue, Py_ssize_t room, double now, Gate gate)
    cdef bint backs_off(self, ProducerBatch batch, double now)
    cpdef void reenqueue(self, ProducerBatch batch, double now, Gate gate)
    cpdef void put_back(self, ProducerBatch batch, Gate gate)
    cpdef list expired(self, double now)
    cdef void expire(self, PartitionQueue queue, double now, list gone)
    cpdef double next_expiry_at(self)
    cpdef bint has_undrained(self)
