from forebay._runtime.clock cimport Clock
from forebay._metrics.sensor cimport NodeSensors, Sensor
from forebay._network.selector cimport SocketSelector


cdef class Exchange:
    cdef object selector
    cdef SocketSelector sockets          # the same one, or None where it is another kind
    cdef Clock clock
    cdef readonly double after
    cdef Sensor requests
    cdef Sensor responses
    cdef Sensor bytes_out
    cdef Sensor bytes_in
    cdef Sensor io_wait_ns
    cdef Sensor io_ns
    cpdef list turn(self, double wait, double now)
    cpdef double end(self) except? -1
    cpdef void sent(self, NodeSensors node, Py_ssize_t size)
    cpdef void received(self, NodeSensors node, Py_ssize_t size, double latency)
