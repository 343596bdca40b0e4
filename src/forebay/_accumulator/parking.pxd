from forebay._accumulator.topic cimport PartitionQueue


cdef class ParkedQueues:
    cdef list heap
    cdef long long puts
    cdef void put(self, PartitionQueue queue)
    cdef PartitionQueue pop(self, double now)
    cdef PartitionQueue take_first(self)
    cdef double next_due(self) except? -2
