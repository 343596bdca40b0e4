from forebay.model._gate cimport Gate, GatedQueue
from forebay._runtime.mutex cimport Mutex
from forebay._accumulator.batch cimport ProducerBatch
from forebay._accumulator.partitioner cimport BuiltInPartitioner
from forebay._accumulator.pool cimport BufferPool


cdef class PartitionQueue(GatedQueue):
    cdef Mutex lock
    # Guarded by lock.
    cdef readonly list batches
    cdef ProducerBatch last
    cdef readonly Py_ssize_t expected    # also read without it: one word
    cdef readonly int place              # in states.pxd; ``move`` changes it
    cdef list to_close
    cdef double left_since
    # Written under the accumulator's lock, when metadata is applied; single words, read without it.
    cdef readonly int leader_id
    cdef readonly int leader_epoch
    # Sender's thread only.
    cdef readonly int line               # the node in whose line it is, NO_LEADER or NO_LINE
    cdef double due                      # ms; of the batch that lingers, while it is parked
    cdef int watched_at                  # its index in BatchSchedule.watched, -1 outside
    cdef int parked_at                   # its index in ParkedQueues.heap, -1 outside
    cdef public bint muted
    cdef public int in_flight
    cdef public object sensors
    cdef readonly TopicState state
    cpdef int move(self, int place) except? -1
    cdef int add(self, ProducerBatch batch) except? -1
    cdef bint leave_to_filler(self, ProducerBatch batch) except? -1
    cdef int take_back(self, ProducerBatch batch) except? -1
    cdef ProducerBatch pop_head(self)
    cdef ProducerBatch pop_at(self, Py_ssize_t at)
    cdef void take_all(self, bint unsent_only, list taken)
    cpdef bint has(self, ProducerBatch batch)
    cpdef bint abandon(self, ProducerBatch batch)
    cdef double blocked_for(self, ProducerBatch head, double now) except? -2
    cpdef void insert(self, ProducerBatch batch, Gate gate)


cdef class TopicIncarnation:
    cdef readonly bytes topic_id
    cdef readonly int number


cdef class TopicState:
    cdef readonly str name
    cdef readonly list queues
    cdef readonly int partition_count
    cdef readonly BuiltInPartitioner partitioner
    cdef readonly object cluster
    cdef tuple infos
    cdef readonly long long version
    cdef readonly TopicIncarnation incarnation
    cdef TopicIncarnation other
    cdef readonly bint missing
    cdef readonly double last_used
    cdef public bint loaded
    cdef public bint weighted
    cdef public object sensors
    cdef void apply(self, TopicChange change)
    cdef void _follow(self, TopicIncarnation newest)
    cdef PartitionQueue queue(self, int partition)
    cdef bint leave_full_node(self, PartitionQueue queue, Py_ssize_t size, BufferPool pool)


cdef class TopicChange:
    cdef object cluster
    cdef long long version
    cdef int count
    cdef tuple infos
    cdef tuple available
    cdef TopicIncarnation incarnation
    cdef list leaders
    cdef list queues


cdef TopicChange change_of(TopicState state, object cluster)
