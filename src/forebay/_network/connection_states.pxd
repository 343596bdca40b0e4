from forebay._network.channel cimport Channel
from forebay._network.connection cimport Connection


cdef class NodeState:
    cdef readonly object addresses
    cdef public object node
    cdef public object state
    cdef public object authentication_error
    cdef public object last_error
    cdef public double last_attempt
    cdef public int failed_attempts
    cdef public int failed_setups
    cdef public double reconnect_backoff_ms
    cdef public double setup_timeout_ms
    cdef public double throttled_until
    cdef public double reauthenticate_at
    cdef public object channel
    cdef public object connection
    cdef public object resolution
    cdef public object race
    cdef public object sensors
    cdef public object setup
    cdef public object credentials
    cdef int free_slots(self, double now, int most) except? -1
    cdef bint can_send(self, double now, int most) except? -1
    cpdef double overdue_at(self) except? -1
    cpdef double idle_at(self, double max_idle_ms) except? -1
