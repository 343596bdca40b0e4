from forebay._accumulator.accumulator cimport RecordAccumulator
from forebay._accumulator.topic cimport TopicState


cdef class TopicFinder:
    cdef RecordAccumulator accumulator
    cdef object metadata
    cdef object wake
    cdef double max_block_ms
    cdef object clock
    cdef object known_since(self, str topic)
    cdef TopicState look_up(self, str topic, int partition, object since, double now)
    cdef object ask_for(self, str topic)
    cdef object not_found(self, str topic, int partition, bint waits, double waited, bint on_sender_thread)
