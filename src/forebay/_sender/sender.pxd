from forebay._accumulator.accumulator cimport RecordAccumulator
from forebay._accumulator.schedule cimport BatchSchedule
from forebay._sender.outcomes cimport BatchOutcomes


# Everything belongs to the sender thread but closing and forced, which any thread sets.
cdef class Sender:
    cdef readonly RecordAccumulator accumulator
    cdef BatchSchedule schedule
    cdef object client
    cdef object metadata
    cdef object transactions
    cdef object metrics
    cdef readonly object requests
    cdef object session
    cdef object producer_ids
    cdef object options
    cdef object log
    cdef readonly BatchOutcomes outcomes
    cdef int acks
    cdef Py_ssize_t max_request_size
    cdef double delivery_timeout_ms
    cdef bint guarantee_order
    cdef int max_in_flight
    cdef long long cluster_version
    cdef readonly dict in_flight
    cdef double next_in_flight_expiry
    cdef readonly bint closing
    cdef readonly bint forced
