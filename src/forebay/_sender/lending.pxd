from forebay._gate cimport Gate
from forebay._gil cimport GilClaim
from forebay._network.lending cimport LentNetwork
from forebay._sender.sender cimport Sender
from forebay._transactions.manager cimport TransactionManager


cdef class SeenTopics(Gate):
    cdef TransactionManager transactions
    cdef public int newest               # version that a request may have for the connection to know the one it comes to


cdef class LentTurn:
    cdef Sender sender
    cdef LentNetwork network
    cdef SeenTopics gate
    cdef readonly GilClaim claim
    cdef bint possible
    cdef bint prompt
    cpdef void tell(self, int status, long long timestamp)
    cpdef bint send_ready(self, double now) except? -1
    cdef bint send_all(self, double now) except? -1
    cdef bint something_first(self) except? -1
    cdef bint send_to(self, int node_id, double now) except? -1
