from forebay._accumulator.waiters cimport PoolWaiter, PoolWaiters, BrokerQuotas
from forebay._runtime.flag cimport Flag
from forebay._runtime.mutex cimport Mutex


cdef class Buffer:
    # Of an open batch they change under the lock of its queue (chunks.grow), else never.
    cdef readonly Py_ssize_t size
    # Guarded by the pool's lock.
    cdef public object owner
    cdef readonly int holds
    # Made elsewhere, and adopted; else the memory is at ``base``.
    cdef readonly Flag adopted
    cdef bytes packed
    cdef unsigned char* base             # as size
    # Bytes that the batch wrote; set when it is done with the chunk.
    cdef Py_ssize_t used
    cdef BufferPool pool
    cpdef void retain(self) noexcept
    cpdef int release(self) except? -1


cpdef Buffer adopt(BufferPool pool, bytes data, object owner)


cdef class BufferPool:
    cdef Mutex lock
    # Set once.
    cdef readonly long long total
    cdef readonly Py_ssize_t poolable_size
    cdef readonly long long owner_limit
    cdef readonly long long overdraft
    cdef readonly long long share_overdraft
    cdef readonly Py_ssize_t overhead
    # Guarded by lock.
    cdef long long overhead_left
    cdef readonly bint closed
    cdef long long left
    cdef readonly list free
    cdef readonly PoolWaiters waiters
    cdef BrokerQuotas shares
    # Sender's thread only; other threads read the first.
    cdef bint deferring
    cdef double deferred_since
    cdef long long deferred_from
    cpdef Buffer allocate(self, Py_ssize_t size, object owner, object ticket, bint roaming=*)
    cpdef Buffer try_chunk(self, object owner)
    cpdef void cancel(self, object ticket)
    cpdef void charge(self, object owner, Py_ssize_t size)
    cpdef void credit(self, object owner, Py_ssize_t size)
    cpdef bint exceeds_share(self, Py_ssize_t size, object owner) except? -1
    cpdef bint starved(self) except? -1
    cpdef Py_ssize_t queued(self) noexcept
    cpdef long long available(self)
    cpdef void close(self)
    cpdef void wake_waiters(self)
    cdef Buffer granted_to(self, PoolWaiter waiter, object owner)
    cdef bint defer(self) except? -1
    cpdef double serve_deferred(self, double now, bint idle) except? -1
    cpdef bint serve_now(self) except? -1
    cdef Buffer create(self, Py_ssize_t size, object owner)
    cdef bint may_have(self, Py_ssize_t size, object owner) except? -1
    cdef bint may_fill(self, Py_ssize_t size, object owner) except? -1
    cdef int count(self, object owner, long long size) except? -1
    cdef Buffer take_free(self, Py_ssize_t size, object owner)
    cdef int grant_all(self) except? -1
    cpdef int serve_waiters(self) except? -1
