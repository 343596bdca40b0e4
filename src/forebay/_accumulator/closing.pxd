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
    cdef bint hand_on(self, PartitionQueue queue, object helpers)
    cdef void leave_to_sender(self, PartitionQueue queue)
    cdef ProducerBatch next_full(self, PartitionQueue queue)
    cdef void end_closing(self, PartitionQueue queue, ProducerBatch batch)
    cpdef void close_now(self, PartitionQueue queue)
    cpdef void close_batch(self, ProducerBatch batch)
    cpdef void close_batches(self, list batches)


cpdef bytearray header_of(ProducerBatch batch)
