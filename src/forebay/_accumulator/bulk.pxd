from forebay._accumulator.accumulator cimport RecordAccumulator
from forebay._accumulator.topic cimport TopicState
from forebay._records.rows cimport RowWindow


cdef Py_ssize_t try_rows(
    RecordAccumulator accumulator, TopicState topic, int partition, RowWindow rows, Py_ssize_t at, Py_ssize_t until
)
