cdef class BrokerQuota:
    cdef readonly long long used
    cdef long long held_up_in


cdef class BrokerQuotas:
    cdef long long limit
    cdef dict by_owner
    cdef BrokerQuota last
    cdef object last_owner
    cdef BrokerQuota of(self, object owner)
    cdef bint lacks(self, Py_ssize_t size, object owner, long long overdraft) except? -1
    cdef int count(self, object owner, long long size) except? -1
    cdef void move(self, object before, object owner, long long size)


cdef class PoolWaiter:
    cdef readonly Py_ssize_t size
    cdef readonly bint roaming
    cdef readonly object owner
    cdef readonly object ticket
    cdef readonly int state
    cdef object buffer


cdef class PoolWaiters:
    cdef readonly list waiting
    cdef BrokerQuotas shares
    cdef long long scans
    cdef bint lets_pass(self, object owner) except? -1
    cdef bint is_held_up(self, PoolWaiter waiter) except? -1
    cdef bint wants_share(self, object owner) except? -1
    cdef bint lack_memory(self, long long left) noexcept
    cdef PoolWaiter next(self, long long left)
    cdef int wake(self, bint roaming_only) except? -1
