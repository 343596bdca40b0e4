from forebay._metrics.sensor cimport NodeSensors, Sensor
from forebay._network.channel cimport Channel
from forebay._network.connection cimport Connection
from forebay._network.connection_states cimport NodeState
from forebay._network.inflight cimport ClientRequest, ClientResponse
from forebay._network.selector cimport Selector
from forebay._runtime.clock cimport Clock


cdef class NetworkClient:
    cdef Selector _selector
    cdef Clock _clock
    cdef object _metadata
    cdef object _options
    cdef object _random
    cdef object _log
    cdef object _updater
    cdef object _connector
    cdef object _handshakes
    cdef object _metrics
    cdef Sensor _requests
    cdef Sensor _responses
    cdef Sensor _bytes_out
    cdef Sensor _bytes_in
    cdef Sensor _io_wait_ns
    cdef Sensor _io_ns
    cdef readonly object states
    cdef readonly object versions
    cdef readonly object gil_claim       # the selector's: whether this thread waits for the GIL
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
    cdef bint _is_open(self, NodeState state, Channel channel, double now) except? -1
    cdef _finish(self, NodeState state, ClientResponse response, double now)
    cdef _complete(self, ClientResponse response)
    cdef _run(self, ClientResponse response)
    cdef _deliver(self)
