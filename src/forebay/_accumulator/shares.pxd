cdef class Share:
    cdef readonly long long used
    cdef long long stopped_at


cdef class Shares:
    cdef long long limit
    cdef dict by_owner
    cdef Share last
    cdef object last_owner
    cdef Share of(self, object owner)
    cdef bint lacks(self, Py_ssize_t size, object owner, long long overdraft) except? -1
    cdef int count(self, object owner, long long size) except? -1
    cdef void move(self, object before, object owner, long long size)
