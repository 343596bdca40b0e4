from forebay._mutex cimport Mutex
from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.topic cimport PartitionQueue, TopicState


cdef class ReadyNodes:
    cdef readonly list nodes
    cdef readonly double next_check
    cdef readonly set unknown_leader_topics


cdef class BatchSchedule:
    cdef Mutex lock
    cdef list activated
    cdef readonly dict nodes
    cdef readonly double linger_ms
    cdef readonly double delivery_timeout_ms
    cdef readonly bint adaptive
    cdef readonly double availability_timeout_ms
    cdef object backoff
    cdef double next_expiry
    cdef long long drains
    cdef dict latency
    cdef set loaded_topics
    cdef bint dropped
    cpdef void activate(self, PartitionQueue queue)
    cdef void collect(self)
    cpdef void follow_leaders(self)
    cdef void move_memory(self, PartitionQueue queue)
    cpdef ReadyNodes ready(self, double now, bint send_all)
    cdef bint look_at(self, PartitionQueue queue, double now, bint send_all, ReadyNodes found)
    cdef bint drop_if_empty(self, PartitionQueue queue)
    cpdef list drain(self, int node_id, Py_ssize_t max_size, double now, object gate)
    cdef ProducerBatch take(self, PartitionQueue queue, Py_ssize_t room, double now, object gate)
    cdef bint backs_off(self, ProducerBatch batch, double now)
    cpdef void reenqueue(self, ProducerBatch batch, double now, object gate)
    cpdef void put_back(self, ProducerBatch batch, object gate)
    cpdef list expired(self, double now)
    cdef bint expire(self, PartitionQueue queue, double now, list gone)
    cpdef double next_expiry_at(self)
    cpdef bint has_undrained(self)
