cdef class ClientRequest:
    cdef readonly int node_id
    cdef readonly int api_key
    cdef readonly int min_version
    cdef readonly int max_version
    cdef readonly object build
    cdef readonly object parse
    cdef readonly object on_complete
    cdef readonly object on_written
    cdef readonly object context
    cdef readonly double timeout_ms
    cdef readonly bint expect_response
    cdef readonly bint internal
    cdef public int version
    cdef public int correlation_id
    cdef public double created
    cdef public double sent
    cdef public double deadline
    cdef readonly bint written
    cdef bint released
    cdef void fill(
        self,
        int node_id,
        int api_key,
        int min_version,
        int max_version,
        object build,
        object parse,
        double timeout_ms,
        object on_complete,
        object context,
    ) noexcept


cdef class ClientResponse:
    cdef readonly ClientRequest request
    cdef readonly object body
    cdef readonly object error
    cdef readonly bint disconnected
    cdef readonly bint timed_out
    cdef readonly double received
    cdef readonly Py_ssize_t size
    cdef public double throttle_ms


cdef ClientResponse answer_to(ClientRequest request, double received, object body, Py_ssize_t size)


cdef class InFlightRequests:
    cdef list _requests
    cdef readonly int count
    cpdef int add(self, ClientRequest request) except? -1
    cpdef ClientRequest first(self)
    cpdef ClientRequest complete_next(self)
    cpdef ClientRequest last_sent(self)
    cpdef ClientRequest complete_last_sent(self)
    cpdef list take_written(self)
    cpdef list waiting(self)
    cpdef list clear(self)
    cpdef double deadline(self) noexcept
    cpdef void postpone(self, double ms)
