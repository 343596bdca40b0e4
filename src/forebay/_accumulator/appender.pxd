from forebay._accumulator.records cimport RecordsBuilder
from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.closing cimport BatchCloser
from forebay._accumulator.incomplete cimport IncompleteBatches
from forebay._accumulator.pool cimport Buffer, BufferPool
from forebay._accumulator.schedule cimport BatchSchedule
from forebay._accumulator.topic cimport PartitionQueue, TopicState
from forebay._delivery.future cimport RecordFuture
from forebay._records.rows cimport RowWindow
from forebay._runtime.primitives cimport RecordPointer


cdef class BatchAppender:
    cdef readonly BufferPool pool
    cdef readonly BatchSchedule schedule
    cdef readonly BatchCloser closer
    cdef readonly IncompleteBatches incomplete
    cdef readonly Py_ssize_t batch_size
    cdef readonly int codec_id
    cdef readonly Py_ssize_t max_raw_size
    cdef public object guard
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
    cdef int drop_unused(self, Buffer buffer, object ticket) except? -1
    cdef void extend(self, TopicState topic, int partition, RecordPointer record)
    cdef Py_ssize_t size_for(self, RecordPointer record, PartitionQueue queue) noexcept
    cdef PartitionQueue queue_of(self, TopicState topic, int partition)
    cdef int close_last(self, PartitionQueue queue, ProducerBatch batch) noexcept
    cdef bint refuses(self) noexcept
    cdef object refusal(self)
    cdef Py_ssize_t try_rows(
        self, TopicState topic, int partition, RowWindow rows, Py_ssize_t at, Py_ssize_t until
    )
