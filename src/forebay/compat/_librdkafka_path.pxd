from forebay.producer._frontend cimport ProducerBatch
from forebay.producer._frontend cimport TopicState
from forebay.producer._frontend cimport RecordPointer
from forebay.producer._path cimport SendPath
from forebay.compat._librdkafka_messages cimport Events, Message


cdef class ProducePath:
    cdef readonly SendPath _native
    cdef readonly Events _events
    cdef readonly object _held
    cdef dict _held_topics               # its own: empty nearly always
    cdef readonly object _batches        # gives the batches without an outcome
    cdef readonly int _kind              # of the partitioner
    cdef readonly object _draw           # a random number, 0 to 2^31 - 1
    cdef readonly bint _is_sticky        # messages without a key go to a sticky partition
    cdef readonly bint _for_all          # each message has an event
    cdef bint _is_silent                 # a message without a callback has none
    cdef bint _keyless_sticks            # a message without a key goes to a sticky partition
    cdef readonly bint _open
    cdef readonly Py_ssize_t _limit
    cdef Py_ssize_t _room                # calls of produce() until the messages are counted again; any thread
    cdef bint _is_full                   # once it is, until a part is free
    cdef object _message_for(self, object topic, object key, object value, object headers, object function)
    cdef object _go(
        self,
        object topic,
        bytes value,
        bytes key,
        object headers,
        int number,
        long long timestamp,
        object wanted,
        bint was_held,
    )
    cdef TopicState state_of(self, object topic, bint was_held)
    cdef object refuse_large(self, RecordPointer record)
    cdef object append(self, TopicState state, int number, RecordPointer record, object wanted)
    cdef int number_for(self, TopicState state, bytes key) except? -2
