from forebay.producer._acknowledged cimport Acknowledged
from forebay._arrow.columns cimport BytesColumn
from forebay._arrow.numbers cimport IntColumn, TimestampColumn
from forebay.producer._columns.row_share cimport RowShare
from forebay._accumulator.topic cimport TopicState
from forebay._runtime.primitives cimport RecordPointer
from forebay.producer._columns.columns cimport Columns
from forebay.producer._columns.batch_delivery cimport BatchDelivery
from forebay.producer._columns.topic_table cimport TopicTable
from forebay._delivery.future cimport RecordFuture
from forebay.producer._path cimport SendPath


cdef class RowAppender:
    cdef SendPath path
    cdef Columns columns
    cdef BatchDelivery delivery
    cdef RecordFuture probe
    cdef TopicState state
    cdef TopicTable topics
    cdef bytes section
    cdef long long wall
    cdef int append(self, Py_ssize_t at, Py_ssize_t row, object callback)
    cdef int place(self, TopicState state, int partition, RecordPointer record, Py_ssize_t row, object callback)
    cdef void note(self, Py_ssize_t row, RecordPointer record)
    cdef int partition_given(self, Py_ssize_t at) except? -2
    cdef long long timestamp_of(self, Py_ssize_t at) except? -1
    cdef TopicState topic_of(self, Py_ssize_t at, int number)
    cdef TopicState ready(self, str topic, int number)
