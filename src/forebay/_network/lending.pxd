from forebay._network.client cimport NetworkClient
from forebay._network.exchange cimport Exchange


cdef class LentNetwork:
    cdef NetworkClient client
    cdef Exchange exchange
    cdef readonly int newest
    cdef int collected                   # whether the collector was on; of who has borrowed the turn
    cdef bint idle(self) noexcept
    cdef double now(self) except? -1
    cdef bint begin(self) except? -1
    cdef void end(self)
    cdef bint takes(self, int node_id, int oldest, double now) except? -1
    cdef bint flush(self, int node_id, double now) except? -1
    cdef bint wakes_by(self, double when) noexcept
