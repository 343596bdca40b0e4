from forebay._accumulator.pool cimport Buffer
from forebay._protocol.produce_response cimport PartitionResponse
from forebay._accumulator.batch cimport ProducerBatch
from forebay._protocol.produce cimport PartitionRecords


cdef class ProduceCall:
    cdef readonly int node_id
    cdef readonly int acks
    cdef readonly int timeout_ms
    cdef readonly list batches
    cdef readonly list held
    cdef readonly dict refused
    cdef readonly int newest
    cdef readonly double drained
    cdef object compressor
    cdef str transactional_id
    cdef set_up(
        self,
        int node_id,
        list batches,
        double drained,
        int acks,
        int timeout_ms,
        object compressor,
        str transactional_id,
    )
    cdef object refusal(self, ProducerBatch batch, object otherwise)
    cdef PartitionRecords entry(self, ProducerBatch batch, int version)
    cpdef void release(self)


cpdef list match(list batches, list answers)
