cdef class ReadyNodes:
    cdef public list nodes
    cdef public double next_check
    cdef readonly set leaderless
    cdef note_leaderless(self, str topic)


cdef ReadyNodes no_nodes()
