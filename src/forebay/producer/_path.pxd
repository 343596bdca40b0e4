from forebay.producer._acknowledged cimport Acknowledged
from forebay._accumulator.appender cimport BatchAppender
from forebay._accumulator.accumulator cimport RecordAccumulator
from forebay._accumulator.topic cimport TopicState
from forebay._runtime.clock cimport Clock
from forebay._runtime.primitives cimport RecordPointer
from forebay._delivery.future cimport RecordFuture
from forebay._runtime.gil cimport GilClaim
from forebay.producer._topics cimport TopicFinder

cpdef enum:                # SendPath._state; the interpreted form has it in path.py
    CLOSED = 1             # 0 is that of a subclass that has not called __init__: it has no fields to be read
    FORKED = 2
    OPEN = 3

cdef enum:                 # what to do with a record that would have to wait; as above
    REFUSE = 0
    WAIT = 1
    RETURN = 2


cdef class SendPath:
    cdef readonly int _state
    cdef RecordAccumulator accumulator
    cdef BatchAppender appender
    cdef object metadata
    cdef object wake
    cdef Clock clock
    cdef object key_serializer
    cdef object value_serializer
    cdef object interceptors
    # An interceptor has on_send; one has on_acknowledgement.
    cdef bint shows_records
    cdef bint tells_ends
    # The callback of all records without one of their own; None where each has its headers.
    cdef Acknowledged for_all
    cdef object partitioner
    cdef object sensors
    cdef object report
    cdef object unheard
    cdef bint plain_bytes
    # A state once known stays, so any thread may set and read it.
    cdef TopicState recent
    cdef bint ignore_keys
    cdef Py_ssize_t max_record_size
    cdef double max_block_ms
    cdef object sender_thread
    cdef GilClaim claim
    cdef object node_error
    cdef TopicFinder topics
    cdef RecordFuture send_heard(self, tuple given, object on_delivery, int blocking)
    cdef RecordFuture dispatch(
        self,
        object topic,
        object value,
        object key,
        object headers,
        object partition,
        object timestamp_ms,
        object on_delivery,
        int blocking,
    )
    cdef TopicState known(self, object topic)
    cdef bint is_plain(self, object key, object value) noexcept
    cdef RecordFuture serialize(
        self,
        TopicState state,
        int partition,
        long long timestamp,
        object key,
        object value,
        object headers,
        object callback,
        int blocking,
        double deadline,
    )
    cdef RecordFuture append_record(
        self,
        TopicState state,
        int partition,
        RecordPointer record,
        object callback,
        int blocking,
        double deadline,
    )
    cpdef TopicState _topic_for_sending(self, str topic, int partition, bint blocking, double deadline)
    cdef int choose_partition(
        self, TopicState state, object key, bytes key_bytes, object value, bytes value_bytes
    ) except? -1
    cdef void check_size(self, RecordPointer record)
    cdef int append_waiting(
        self,
        TopicState state,
        int partition,
        RecordPointer record,
        RecordFuture future,
        object callback,
        int blocking,
        double deadline,
    ) except? -1
    cdef object exhausted(self, TopicState state, int partition, RecordPointer record, double waited)
