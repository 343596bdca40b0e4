from forebay._delivery.callbacks cimport DeliveryCallbacks
from forebay._runtime.primitives cimport RecordPointer
from forebay._accumulator.account cimport BatchAccount
from forebay._accumulator.pool cimport Buffer
from forebay._accumulator.records cimport RecordsBuilder
from forebay._runtime.flag cimport Flag
from forebay._delivery.future cimport RecordFuture
from forebay._delivery.result cimport BatchResult
from forebay.model._gate cimport GatedQueue, StampedBatch
from forebay._records.rows cimport RowWindow


# A retry, an expiry and an outcome are the sender's thread's.  What records touch is guarded by the queue's lock while the
# batch is open.  Fields of eight bytes stand before smaller ones, see RecordsBuilder.
cdef class ProducerBatch(StampedBatch):
    cdef readonly RecordsBuilder records
    cdef readonly BatchAccount account
    cdef readonly BatchResult result
    cdef readonly double created
    cdef public double drained
    cdef public long long drain_number
    cdef public double retry_at
    cdef public object last_error
    cdef public long long metadata_ticket
    cdef readonly bytes topic_id         # under which it was drained last
    cdef public int attempts
    cdef readonly int attempts_when_leader_last_changed
    cdef public int last_node
    cdef int slot                        # its index in IncompleteBatches, whose lock guards it; -1: not in there
    cdef readonly signed char life       # in states.pxd; ``become`` changes it
    cdef readonly signed char final_state
    cdef public Flag in_flight
    cdef public Flag sparse              # it took more records when it was drained
    cdef public Flag maybe_written
    cdef set_up(self, GatedQueue queue, RecordsBuilder records, double created, int first)
    cdef Py_ssize_t try_append(self, RecordPointer record, RecordFuture future, object callback) except? -2
    cdef Py_ssize_t append_rows(self, RowWindow rows, Py_ssize_t at, Py_ssize_t until)
    cdef bint affords(self, object callback) except? -1
    cdef bint affords_callback(self, object callback) except? -1
    cdef bint lacks_chunk(self, RecordPointer record) noexcept
    cdef void attach(self, RecordPointer record, RecordFuture future) noexcept
    cpdef bint is_full(self) noexcept
    cpdef Py_ssize_t estimated_size(self) noexcept
    cdef void add_chunk(self, Buffer chunk, list spare)
    cpdef void close_for_appends(self) noexcept
    cpdef int become(self, int life) except? -1
    cdef bint is_being_closed(self) noexcept
    cdef void set_target(self, int incarnation, bytes topic_id, int leader_epoch) noexcept
    cpdef bint update_leader_epoch(self, int epoch) noexcept
    cpdef bint leader_changed_for_retry(self) noexcept
    cpdef int release(self) except? -1
    cpdef bint move_to(self, object owner) except? -1
    cpdef bint reached_delivery_timeout(self, double timeout_ms, double now) noexcept
    cpdef bint complete(self, long long base_offset, long long log_append_time, object report) except? -1
    cpdef bint fail(self, object error, dict record_errors, object report) except? -1
    cpdef bint abort(self, object error, object report) except? -1
    cdef bint _finish(self, int state) except? -1
    cpdef bytes header(self)


cdef ProducerBatch new_batch(GatedQueue queue, RecordsBuilder records, double created, int first)
