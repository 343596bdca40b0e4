from forebay._network.inflight cimport ClientRequest, InFlightRequests


cdef class Connection:
    cdef readonly object node
    cdef readonly object client_id
    cdef readonly Py_ssize_t max_frame
    cdef readonly InFlightRequests in_flight
    cdef public object versions
    cdef bint _unanswered
    cpdef list encode(self, ClientRequest request, int correlation_id, double now)
    cpdef withdraw(self, ClientRequest request)
    cpdef Py_ssize_t receive(self, object data, double now, list completed) except? -1
    cpdef take_written(self, double now, list completed)
    cpdef list abort(self, double now, object error, bint timed_out)
    cdef _answer(self, ClientRequest request, object frame, double now)
