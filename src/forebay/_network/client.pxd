from forebay._clock cimport SystemClock
from forebay._metrics.sensor cimport Sensor
from forebay._network.channel cimport Channel
from forebay._network.connection cimport Connection
from forebay._network.connection_states cimport NodeState
from forebay._network.inflight cimport ClientRequest, ClientResponse
from forebay._network.selector cimport SocketSelector


cdef class NetworkClient:
    cdef object _selector
    cdef SocketSelector _sockets         # the same one, or None where it is another kind
    cdef object _metadata
    cdef object _options
    cdef object _clock
    cdef SystemClock _system_clock       # likewise
    cdef object _random
    cdef object _log
    cdef object _states
    cdef object _updater
    cdef object _connector
    cdef object _metrics
    cdef Sensor _bytes_out
    cdef Sensor _bytes_in
    cdef Sensor _requests
    cdef Sensor _responses
    cdef Sensor _io_wait_ns
    cdef Sensor _io_ns
    cdef readonly object versions
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
    cpdef send(self, ClientRequest request, double now)
    cpdef transmit(self, ClientRequest request, double now)
    cpdef double poll(self, double timeout_ms, double now) except? -1
    cpdef check_at(self, double when)
    cdef list _turn(self, double wait, double now)
    cdef double _now(self) except? -1
    cdef _serve(self, Channel channel, double now)
    cdef _settle(self, NodeState state, ClientResponse response, double now)
    cdef _complete(self, ClientResponse response)
    cdef _run(self, ClientResponse response)
    cdef _deliver(self)
