from forebay._runtime.primitives cimport RecordPointer
from forebay._accumulator.account cimport BatchAccount
from forebay._accumulator.chunks cimport ChunkedBatch
from forebay._accumulator.pool cimport Buffer, BufferPool
from forebay._delivery.callbacks cimport DeliveryCallbacks
from forebay._runtime.flag cimport Flag
from forebay._delivery.future cimport RecordFuture
from forebay._delivery.result cimport BatchResult
from forebay._gate cimport GatedQueue
from forebay._records.rows cimport RowWindow


cdef class ProducerBatch(ChunkedBatch):
    # What every append touches comes first, behind the chunk's: with thousands of partitions each line of the processor's
    # cache comes from memory.  Fields of eight bytes before smaller ones, as there would be gaps, and none larger than
    # it need be, as there are as many of these as batches wait; sizes of records are int32 in the protocol, too.
    # Owned by the queue's lock while the batch is open, by the sender thread afterwards.
    cdef readonly long long base_timestamp
    cdef readonly long long max_timestamp
    cdef readonly BatchAccount account
    cdef readonly int write_limit
    cdef readonly int raw_size
    cdef readonly int max_record_size
    cdef readonly int raw_limit
    cdef readonly Flag compressed
    cdef readonly signed char life       # in states.pxd; ``become`` changes it
    cdef public Flag in_flight
    cdef public Flag maybe_written
    cdef readonly signed char final_state
    cdef readonly BatchResult result
    # Shared with the result: appends are made under the queue's lock, the sender reads once the batch is closed.
    cdef DeliveryCallbacks callbacks
    cdef readonly double compression_ratio
    cdef readonly str topic
    cdef readonly list payload
    cdef readonly Py_ssize_t payload_size  # of what does not compress, more than its records, which an int32 holds
    cdef readonly double created
    cdef public double drained
    cdef public long long drain_number
    cdef public double retry_at
    cdef public object last_error
    cdef public long long asked
    cdef readonly bytes topic_id  # under which it was drained last; the sender's thread's
    # CRC-32C of the first ``checked`` bytes of records, of a batch without compression.
    cdef unsigned int checksum
    cdef int checked
    cdef readonly int partition
    cdef public int attempts
    cdef readonly int attempts_when_leader_last_changed
    cdef public int last_node
    cdef int slot  # in the accumulator's list of those without an outcome, whose lock guards it; -1: not in there
    cdef readonly signed char codec_id
    cdef begin(
        self,
        GatedQueue queue,
        Buffer chunk,
        Py_ssize_t write_limit,
        double created,
        int codec_id,
        double compression_ratio,
        Py_ssize_t raw_limit,
        int first,
    )
    cdef Py_ssize_t try_append(self, RecordPointer record, RecordFuture future, object callback) except? -2
    cdef Py_ssize_t take_rows(self, RowWindow rows, Py_ssize_t at, Py_ssize_t until)
    cdef Py_ssize_t raw_room(self) noexcept
    cdef Py_ssize_t room(self) noexcept
    cdef Py_ssize_t room_for(self, Py_ssize_t size) noexcept
    cdef bint affords(self, object callback) except? -1
    cdef bint affords_callback(self, object callback) except? -1
    cdef bint lacks_chunk(self, RecordPointer record) noexcept
    cdef void attach(self, RecordPointer record, RecordFuture future) noexcept
    cpdef bint is_full(self) noexcept
    cpdef Py_ssize_t estimated_size(self) noexcept
    cdef void add_chunk(self, Buffer chunk, list spare)
    cpdef void close_for_appends(self) noexcept
    cpdef int become(self, int life) except? -1
    cdef bint is_others(self) noexcept
    cdef void aim_at(self, int incarnation, bytes topic_id, int leader_epoch) noexcept
    cpdef bint update_leader_epoch(self, int epoch) noexcept
    cpdef bint leader_changed_for_retry(self) noexcept
    cpdef int release(self) except? -1
    cpdef bint move_to(self, object owner) except? -1
    cpdef bint reached_delivery_timeout(self, double timeout_ms, double now) noexcept
    cpdef bint complete(self, long long base_offset, long long log_append_time, object report) except? -1
    cpdef bint fail(self, object error, dict record_errors, object report) except? -1
    cpdef bint abort(self, object error, object report) except? -1
    cdef bint _finish(self, int state) except? -1


cdef ProducerBatch new_batch(
    GatedQueue queue,
    Buffer chunk,
    Py_ssize_t write_limit,
    double created,
    int codec_id,
    double compression_ratio,
    Py_ssize_t raw_limit,
    int first,
)
