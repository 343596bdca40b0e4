from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.pool cimport BufferPool


cdef class MemoryReturn:
    cdef BufferPool pool
    cdef object clock
    cdef list held
    cdef long long size
    cdef double since
    cpdef void give_back(self, ProducerBatch batch)
    cpdef double serve(self, double now, bint idle) except? -1
    cpdef bint let_go(self) except? -1
