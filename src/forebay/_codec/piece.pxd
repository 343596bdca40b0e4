cdef class Piece:
    cdef readonly bytearray data
    cdef unsigned char* start
    cdef Py_ssize_t size


cpdef object piece(bytearray data, Py_ssize_t start, Py_ssize_t stop)
