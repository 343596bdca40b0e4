from forebay._accumulator.topic cimport PartitionQueue


cdef class ParkedQueues:
    cdef readonly list heap
    cdef int put(self, PartitionQueue queue) except? -1
    cdef int remove(self, PartitionQueue queue) except? -1
    cdef PartitionQueue first(self)
    cdef double next_due(self) except? -2
    cdef int rise(self, PartitionQueue queue, Py_ssize_t at) except? -1
    cdef int sink(self, PartitionQueue queue, Py_ssize_t at) except? -1
    cdef int set(self, Py_ssize_t at, PartitionQueue queue) except? -1
