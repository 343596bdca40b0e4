from forebay._codec._prim cimport RecordPointer


cdef Py_ssize_t record_body_size(
    long long timestamp_delta, long long offset_delta, Py_ssize_t key_size, Py_ssize_t value_size, Py_ssize_t headers_size
) noexcept nogil
cdef Py_ssize_t record_size(Py_ssize_t body_size) noexcept nogil
cdef Py_ssize_t put_record(
    unsigned char* to, Py_ssize_t at, Py_ssize_t room, RecordPointer record, long long timestamp_delta, long long offset_delta
) noexcept nogil
cpdef bytes encode_headers(object headers)
cdef Py_ssize_t plain_headers_size(object headers) except? -2
cdef Py_ssize_t headers_size(object headers) except? -1
cdef Py_ssize_t header_size(Py_ssize_t key_size, Py_ssize_t value_size) noexcept
