from forebay._runtime.mutex cimport Mutex
from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.closing cimport BatchCloser
from forebay._accumulator.incomplete cimport IncompleteBatches
from forebay._accumulator.pool cimport Buffer, BufferPool
from forebay._accumulator.returning cimport MemoryReturn
from forebay._accumulator.drain cimport BatchDrain
from forebay._accumulator.schedule cimport BatchSchedule
from forebay._accumulator.topic cimport PartitionQueue, TopicChange, TopicState, change_of
from forebay._runtime.primitives cimport RecordPointer
from forebay._delivery.future cimport RecordFuture


cdef class RecordAccumulator:
    cdef Mutex lock
    cdef readonly BufferPool pool
    cdef readonly BatchSchedule schedule
    cdef readonly BatchDrain drain
    cdef readonly dict topics
    cdef readonly Py_ssize_t batch_size
    cdef readonly int codec_id
    cdef object make_partitioner
    cdef readonly Py_ssize_t max_raw_size
    cdef readonly BatchCloser closer
    cdef readonly IncompleteBatches incomplete_batches
    cdef readonly MemoryReturn returning
    cdef public object guard
    cpdef TopicState topic(self, str name)
    cpdef TopicState refresh(self, str name, object cluster)
    cdef int append(
        self,
        TopicState topic,
        int partition,
        RecordPointer record,
        RecordFuture future,
        object callback,
        object ticket,
        double now,
    ) except? -1
    cdef int try_append(
        self, TopicState topic, int partition, RecordPointer record, RecordFuture future, object callback
    ) except? -1
    cdef int try_locked(
        self, TopicState topic, PartitionQueue queue, bint sticky, RecordPointer record, RecordFuture future, object callback
    ) except? -1
    cdef int start_batch(
        self,
        TopicState topic,
        int partition,
        Buffer buffer,
        RecordPointer record,
        RecordFuture future,
        object callback,
        double now,
    ) except? -1
    cdef int start_locked(
        self, TopicState topic, bint sticky, ProducerBatch batch, RecordPointer record, RecordFuture future, object callback
    ) except? -1
    cdef Buffer allocate(self, TopicState topic, int partition, RecordPointer record, object ticket)
    cdef int settle(self, Buffer buffer, object ticket) except? -1
    cdef void extend(self, TopicState topic, int partition, RecordPointer record)
    cdef Py_ssize_t size_for(self, RecordPointer record) noexcept
    cdef PartitionQueue queue_of(self, TopicState topic, int partition)
    cdef int close_last(self, PartitionQueue queue, ProducerBatch batch) noexcept
    cdef bint refuses(self) noexcept
    cdef object refusal(self)
    cpdef bint flushing(self) noexcept
    cdef list taken(self, bint unsent_only)
    cpdef int deallocate(self, ProducerBatch batch) except? -1
