cimport cython

from forebay._runtime.mutex cimport Mutex


@cython.final
@cython.no_gc
cdef class Sensor:
    cdef readonly double total
    cdef readonly long long count
    cdef readonly double born
    cdef double maximum
    cdef double base_total
    cdef long long base_count
    cdef double opened
    cdef list closed
    cpdef void record(self, double value) noexcept
    cpdef void record_many(self, double total, long long count, double maximum) noexcept
    cdef int close_into(self, list windows, double next_start, double expired) except? -1


@cython.no_gc
cdef class SharedSensor:
    cdef Mutex lock
    cdef Sensor sensor


@cython.final
cdef class Histogram:
    cdef readonly double total
    cdef long long* numbers
    cpdef void record_even(self, double low, double high, long long count) noexcept


cdef class TopicSensors:
    cdef readonly Sensor records
    cdef readonly Sensor bytes
    cdef readonly Sensor compression_rate
    cdef readonly Sensor retries
    cdef readonly Sensor errors
    cdef readonly Histogram ack_time
    cdef void count_acks(self, long long records, double span, double created, double drained, double now) noexcept


cdef class NodeSensors:
    cdef readonly Sensor requests
    cdef readonly Sensor bytes_out
    cdef readonly Sensor responses
    cdef readonly Sensor bytes_in
    cdef readonly Sensor latency
    cdef void count_request(self, Py_ssize_t size) noexcept
    cdef void count_response(self, Py_ssize_t size, double latency) noexcept
