cimport cython

from forebay.model._metadata cimport DeliveryReport, RecordMetadata
from forebay._runtime.memory cimport ObjectPointer


# See StampedBatch.
@cython.no_gc
cdef class CompiledCallback:
    cdef object deliver(self, RecordMetadata metadata, object error)
    cdef bint tells_owner(self) noexcept


@cython.no_gc
cdef class AddedCallback(CompiledCallback):
    cdef AddedCallback before
    cdef object function
    cdef Py_ssize_t number
    cdef signed char kind


cdef class DeliveryCallbacks:
    cdef ObjectPointer* functions
    cdef Py_ssize_t function_count
    cdef Py_ssize_t function_room
    cdef long long* numbers
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t room
    # What seek found.
    cdef Py_ssize_t next_function
    cdef long long timestamp
    cdef long long key_size
    cdef long long value_size
    # Records in a row whose callback could not be called, and where they begin; not said yet.
    cdef Py_ssize_t lost_at
    cdef Py_ssize_t lost
    cdef bint repeats(self, object function) noexcept
    cdef int reserve(self, Py_ssize_t index, Py_ssize_t expected) except? -1
    cdef void add(self, Py_ssize_t index, object function, long long timestamp, long long key_size, long long value_size) noexcept
    cdef void put(self, object function, long long timestamp, long long key_size, long long value_size) noexcept
    cdef object last(self)
    cdef object before_last(self)
    cdef bint repeat(
        self,
        Py_ssize_t index,
        int kind,
        object function,
        Py_ssize_t number,
        long long timestamp,
        long long key_size,
        long long value_size,
    ) noexcept
    cdef void replace_last(self, object function) noexcept
    cdef object seek(self, Py_ssize_t index)
    cdef void share(self, list parts, list ends)
    cdef void mark_heard(self, bytearray heard)


cdef AddedCallback alike(AddedCallback known, AddedCallback before, int kind, object function, Py_ssize_t number)
cdef bint hears(object function) noexcept
cdef object deliver_to(object function, DeliveryReport report)
cdef object copy_or_itself(object error)
