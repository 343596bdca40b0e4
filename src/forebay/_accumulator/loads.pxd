from forebay._accumulator.topic cimport PartitionQueue, TopicState


cdef class PartitionLoads:
    cdef readonly double availability_timeout_ms
    cdef dict latency
    cdef set topics
    cdef double weigh_at
    cdef void note(self, TopicState topic)
    cdef int weigh(self, double now) except? -1
    cpdef update_node_latency(self, int node_id, double now, bint can_drain)
