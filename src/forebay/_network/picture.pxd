cdef class Picture:
    cdef public object newest
    cdef public double due_at
