from forebay._accumulator.pool cimport Buffer, BufferPool
from forebay._runtime.flag cimport Flag


cdef class BatchAccount:
    cdef BufferPool pool
    # Guarded by the lock of the batch's queue.
    cdef Py_ssize_t room
    # Guarded by the pool's lock.
    cdef readonly object owner
    cdef readonly Py_ssize_t charged
    cdef Flag spared
    cdef Flag closed
    # Set once, without a lock; every append reads it.
    cdef readonly Flag stopped
    cdef void set_up(self, BufferPool pool, object owner) noexcept
    cpdef int open(self, object callback) except? -1
    cdef void add_chunk(self)
    cdef bint afford_another(self) noexcept
    cpdef bint afford(self, object callback, bint repeated, Py_ssize_t skipped, int records) except? -1
    cpdef void charge(self, Py_ssize_t size)
    cpdef Py_ssize_t of_records(self)
    cpdef void charge_callback(self, object callback)
    cpdef void charge_numbers(self, Py_ssize_t records)
    cpdef void credit_callback(self, object callback)
    cpdef void move(self, object owner, Buffer first, list further)
    cpdef int close(self) except? -1


cdef Py_ssize_t callback_cost(object callback) noexcept
cdef BatchAccount new_account(BufferPool pool, object owner)
