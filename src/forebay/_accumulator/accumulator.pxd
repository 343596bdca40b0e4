from forebay._runtime.clock cimport Clock
from forebay._runtime.mutex cimport Mutex
from forebay._accumulator.appender cimport BatchAppender
from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.closing cimport BatchCloser
from forebay._accumulator.incomplete cimport IncompleteBatches
from forebay._accumulator.pool cimport BufferPool
from forebay._accumulator.drain cimport BatchDrain
from forebay._accumulator.schedule cimport BatchSchedule
from forebay._accumulator.topic cimport change_of, PartitionQueue, TopicChange, TopicState


cdef class RecordAccumulator:
    cdef Mutex lock
    cdef readonly BufferPool pool
    cdef readonly BatchSchedule schedule
    cdef readonly BatchDrain drain
    cdef readonly dict topics
    cdef object make_partitioner
    cdef readonly BatchCloser closer
    cdef readonly IncompleteBatches incomplete_batches
    cdef Clock clock
    cdef readonly BatchAppender appender
    cpdef TopicState topic(self, str name)
    cpdef TopicState refresh(self, str name, object cluster)
    cpdef bint flushing(self) noexcept
    cdef list taken(self, bint unsent_only)
    cpdef int deallocate(self, ProducerBatch batch) except? -1
