from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.schedule cimport BatchSchedule
from forebay._accumulator.topic cimport PartitionQueue, TopicIncarnation
from forebay.model._gate cimport Gate


cdef class BatchDrain:
    cdef BatchSchedule schedule
    cdef long long drains
    cdef readonly bint more
    cdef readonly bint cut_short
    cdef bint ripe_only
    cdef readonly double behind_check
    cpdef void begin(self) noexcept
    cpdef list drain(self, int node_id, Py_ssize_t max_size, double now, Gate gate)
    cdef ProducerBatch take(self, PartitionQueue queue, Py_ssize_t room, double now, Gate gate)
    cdef ProducerBatch head_for(self, PartitionQueue queue, Py_ssize_t room, double now)
    cdef bint take_head(self, PartitionQueue queue, ProducerBatch head, Py_ssize_t room) except? -1
    cdef int check_behind(self, PartitionQueue queue, double now) except? -1
