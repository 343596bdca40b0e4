from forebay._network.inflight cimport ClientRequest, ClientResponse, InFlightRequests


cdef class Connection:
    cdef readonly object node
    cdef readonly object client_id
    cdef public Py_ssize_t max_frame
    cdef readonly InFlightRequests in_flight
    cdef public object versions
    cdef int _unanswered
    cdef bytes _name
    cdef object _kind_by
    cdef int _kind_api
    cdef int _kind_oldest
    cdef int _kind_newest
    cdef int _kind_version
    cdef bint _kind_flexible
    cdef bint _kind_tagged
    cpdef list encode(self, ClientRequest request, int correlation_id, double now)
    cpdef withdraw(self, ClientRequest request)
    cpdef Py_ssize_t receive(self, object data, double now, list completed) except? -1
    cpdef take_written(self, double now, list completed)
    cpdef list abort(self, double now, object error, bint timed_out)
    cdef bint _is_known(self, ClientRequest request) noexcept
    cdef ClientResponse _answer(self, ClientRequest request, object data, Py_ssize_t at, Py_ssize_t size, double now)
    cdef Py_ssize_t _header_size(self, ClientRequest request, object data, Py_ssize_t at, Py_ssize_t size) except? -1
