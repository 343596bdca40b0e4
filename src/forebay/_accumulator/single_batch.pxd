from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.pool cimport Buffer
from forebay._accumulator.records cimport RecordsBuilder
from forebay._accumulator.appender cimport BatchAppender
from forebay._accumulator.topic cimport PartitionQueue, TopicState
from forebay._delivery.future cimport RecordFuture


cdef int append_whole(
    BatchAppender appender,
    TopicState topic,
    int partition,
    list records,
    Py_ssize_t size,
    RecordFuture future,
    object ticket,
    double now,
) except? -1
