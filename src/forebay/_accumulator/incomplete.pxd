from forebay._accumulator.topic cimport PartitionQueue
from forebay._runtime.mutex cimport Mutex
from forebay._accumulator.batch cimport ProducerBatch


cdef class IncompleteBatches:
    cdef Mutex lock
    cdef list batches  # each where its ``slot`` says
    cdef readonly bint closed
    cdef readonly bint sealed
    cdef readonly int flushes
    cdef bint admit(self, ProducerBatch batch) except? -1
    cdef int discard(self, ProducerBatch batch) except? -1
    cdef int put(self, ProducerBatch batch) except? -1
    cdef int take_out(self, ProducerBatch batch) except? -1
    cpdef void replace(self, ProducerBatch parent, list children)
    cpdef void close(self)
    cpdef void seal(self)
    cpdef void unseal(self)
    cpdef void add_flushes(self, int change)
    cpdef list listed(self, int flushes)
