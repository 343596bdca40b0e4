from forebay._accumulator.pool cimport Buffer, BufferPool
from forebay._accumulator.records cimport RecordsBuilder
from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.topic cimport PartitionQueue


cdef class BatchCloser:
    cdef readonly object compressor
    cdef readonly int codec_id
    cdef public object wake
    cdef public object helpers
    cdef public object watch
    cdef readonly set helped_threads
    cdef object codec
    cdef object estimator
    cdef double ratio(self, str topic)
    cdef void forget_ratio(self, ProducerBatch batch)
    cdef void compress_full(self, PartitionQueue queue)
    cdef void offer_to_helpers(self, PartitionQueue queue)
    cpdef void compress_queues(self, list queues)
    cdef bint compress_unit(self, list queues) except? -1
    cdef void close_or_leave(self, ProducerBatch batch)
    cdef void finish_all(self, list taken)
    cdef void wake_sender(self)
    cdef void leave_to_sender(self, PartitionQueue queue)
    cpdef void close_batch(self, ProducerBatch batch)
    cdef Py_ssize_t copied(self, ProducerBatch batch) except? -1
    cpdef void close_drained(self, list batches)
    cdef void close_together(self, list small)


cdef void charge(list batches, list charges)
cdef void credit(list charges)
cdef bint take_full(list queues, list taken) except? -1
cdef void finish_first(list taken)
cdef Py_ssize_t size_to_close(PartitionQueue queue) except? -1
cpdef int make_final(ProducerBatch batch, object compressor) except? -1
cdef int sealed(ProducerBatch batch) except? -1
cpdef list pieces_of(ProducerBatch batch)
cpdef void take_packed(ProducerBatch batch, list packed)
