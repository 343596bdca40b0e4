cdef class Piece:
    cdef readonly object owner
    cdef unsigned char* start
    cdef Py_ssize_t size


cdef object piece_at(object owner, unsigned char* memory, Py_ssize_t start, Py_ssize_t stop)
cpdef object piece(bytearray data, Py_ssize_t start, Py_ssize_t stop)
