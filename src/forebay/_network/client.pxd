from forebay._network.channel cimport Channel
from forebay._network.connection cimport Connection
from forebay._network.connection_states cimport NodeState
from forebay._network.exchange cimport Exchange
from forebay._network.inflight cimport ClientRequest, ClientResponse
from forebay._network.picture cimport Picture


cdef class NetworkClient:
    cdef object _selector
    cdef Exchange _exchange
    cdef object _metadata
    cdef Picture _picture                # the same one
    cdef object _options
    cdef object _random
    cdef object _log
    cdef object _states
    cdef object _updater
    cdef object _connector
    cdef object _metrics
    cdef readonly object versions
    # Where this thread's wait for the GIL shows; None over a selector that never gives the GIL up.
    cdef readonly object gil_claim
    cdef dict _nodes
    cdef list _completed
    cdef double _next_check
    cdef int _correlation
    cdef int _max_in_flight
    cdef readonly int in_flight
    cdef readonly bint closed
    cpdef bint ready(self, object node, double now) except? -1
    cpdef bint is_ready(self, object node, double now) except? -1
    cpdef bint can_send(self, int node_id, double now) except? -1
    cpdef int slots(self, int node_id, double now) except? -1
    cpdef send(self, ClientRequest request, double now)
    cpdef transmit(self, ClientRequest request, double now)
    cdef _transmit(self, NodeState state, ClientRequest request, double now)
    cpdef double poll(self, double timeout_ms, double now) except? -1
    cpdef check_at(self, double when)
    cdef _serve(self, Channel channel, double now)
    cdef _settle(self, NodeState state, ClientResponse response, double now)
    cdef _complete(self, ClientResponse response)
    cdef _run(self, ClientResponse response)
    cdef _deliver(self)
