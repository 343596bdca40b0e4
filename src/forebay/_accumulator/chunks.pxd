from forebay._accumulator.pool cimport Buffer, BufferPool


cdef int usable(Buffer chunk, Py_ssize_t limit, bint compressed) noexcept
cdef Py_ssize_t chunk_size(Py_ssize_t record, Py_ssize_t expected, Py_ssize_t batch_size) noexcept
cpdef bint grow(Buffer chunk, Py_ssize_t least, Py_ssize_t most) noexcept
cdef bint take(BufferPool pool, Py_ssize_t size, object owner) except? -1
cdef void give_back(BufferPool pool, Py_ssize_t size, object owner)
cpdef Buffer shrunk(Buffer chunk)
