from forebay._accumulator.accumulator cimport RecordAccumulator
from forebay._accumulator.pool cimport Buffer, BufferPool
from forebay._accumulator.records cimport RecordsBuilder
from forebay.model._gate cimport Gate
from forebay._accumulator.batch cimport ProducerBatch


cpdef Py_ssize_t split_size(ProducerBatch batch, Py_ssize_t batch_size)
cpdef list split(ProducerBatch batch, Py_ssize_t size)
cdef Py_ssize_t size_of(object record, long long base_timestamp, int offset)
cdef ProducerBatch part_of(ProducerBatch batch, Py_ssize_t begin, Py_ssize_t raw)
cdef void fill(ProducerBatch child, object records, ProducerBatch batch)
cpdef void write(ProducerBatch child, object record)
