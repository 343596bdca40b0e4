from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.topic cimport PartitionQueue


cdef class BatchCloser:
    cdef readonly object compressor
    cdef readonly int codec_id
    cdef public object wake
    cdef readonly dict helpers
    cdef public int most_helpers
    cdef object codec
    cdef object estimator
    cdef double ratio(self, str topic)
    cdef void forget_ratio(self, ProducerBatch batch)
    cdef void close_full(self, PartitionQueue queue)
    cpdef void close_now(self, PartitionQueue queue)
    cdef void hand_on(self, PartitionQueue queue, ProducerBatch batch)
    cdef void leave(self, PartitionQueue queue)
    cpdef void close_batch(self, ProducerBatch batch)
    cdef Py_ssize_t copied(self, ProducerBatch batch) except? -1
    cpdef void close_batches(self, list batches)


cdef ProducerBatch taken_from(PartitionQueue queue)
cpdef bytearray header_of(ProducerBatch batch)
