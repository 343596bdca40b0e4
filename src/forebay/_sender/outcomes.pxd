from forebay._accumulator.topic cimport PartitionQueue
from forebay._accumulator.accumulator cimport RecordAccumulator
from forebay._accumulator.batch cimport ProducerBatch
from forebay._metrics.sensor cimport Sensor, TopicSensors
from forebay._protocol.produce_response cimport PartitionResponse
from forebay._transactions.manager cimport TransactionManager


cdef class OutcomeHandler:
    cdef RecordAccumulator accumulator
    cdef object metadata
    cdef object client
    cdef TransactionManager transactions
    cdef object metrics
    cdef object log
    cdef object report
    cdef int retries
    cdef double delivery_timeout_ms
    # The batches and answers (None: none are given) of the response that is applied; one word, any thread reads it.
    cdef public tuple answer_in_progress
    cdef public object on_expiry
    cdef object splitting
    cdef readonly object unheard
    cdef readonly long long failed_records  # by outcomes; records that send() refuses do not count
    cdef apply(self, ProducerBatch batch, PartitionResponse answer, object error, double now)
    cdef acknowledge(self, ProducerBatch batch, PartitionResponse answer, double now)
    cdef TopicSensors topic_sensors(self, ProducerBatch batch, double now)


cdef class RequestSensors:
    cdef Sensor batch_size
    cdef Sensor queue_time
    cdef Sensor compression_rate
    cdef Sensor record_size
    cdef Sensor records_sent
    cdef Sensor request_latency
    cdef Sensor throttle_time
    cdef record(self, list batches, OutcomeHandler outcomes, double now)
