from forebay._accumulator.accumulator cimport RecordAccumulator
from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.closing cimport BatchCloser
from forebay._accumulator.drain cimport BatchDrain
from forebay._accumulator.schedule cimport ReadyNodes
from forebay._accumulator.schedule cimport BatchSchedule
from forebay._network.client cimport NetworkClient
from forebay._sender.outcomes cimport OutcomeHandler
from forebay._transactions.manager cimport TransactionManager


cdef class SparseInFlight:
    cdef int node_id
    cdef int count


cdef class Draining:
    cdef BatchSchedule schedule
    cdef BatchDrain batches
    cdef NetworkClient client
    cdef object metadata
    cdef TransactionManager transactions
    cdef Py_ssize_t max_request_size
    cdef bint compresses
    cdef int max_sparse
    cdef dict sparse                     # SparseInFlight by node
    cdef SparseInFlight latest           # the one that was asked for last
    cdef OutcomeHandler outcomes
    cdef BatchCloser closer
    cdef double collect(self, ReadyNodes found, list calls, double now) except? -2
    cdef bint holds(self, int node_id) except? -1
    cdef SparseInFlight sparse_of(self, int node_id)
    cdef int count_sparse(self, ProducerBatch batch, int change) except? -1
    cdef drain(self, int node_id, list calls, double now)
    cdef list close(self, list calls, double now)
    cpdef put_back(self, list calls, double now)
