from forebay._metrics.sensor cimport Sensor
from forebay._sender.outcomes cimport BatchOutcomes


cdef class RequestSensors:
    cdef Sensor batch_size
    cdef Sensor queue_time
    cdef Sensor compression_rate
    cdef Sensor record_size
    cdef Sensor records_sent
    cdef Sensor request_latency
    cdef Sensor throttle_time
    cdef record(self, list batches, BatchOutcomes outcomes, double now)
