from forebay._accumulator.topic cimport PartitionQueue
from forebay._codec._due_heap cimport DueEntry


cdef class ParkedQueues:
    cdef DueEntry* heap
    cdef Py_ssize_t count
    cdef Py_ssize_t room
    cdef long long puts
    cdef void put(self, PartitionQueue queue)
    cdef PartitionQueue pop(self, double now)
    cdef PartitionQueue take_first(self)
    cdef double next_due(self) except? -2
    cdef list listed(self)
    cdef void clear(self)
