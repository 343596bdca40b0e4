from forebay._runtime.primitives cimport RecordPointer


cdef Py_ssize_t record_body_size(
    long long timestamp_delta, long long offset_delta, Py_ssize_t key_size, Py_ssize_t value_size, Py_ssize_t headers_size
) noexcept nogil
cdef Py_ssize_t record_size(Py_ssize_t body_size) noexcept nogil
cdef Py_ssize_t put_record(
    unsigned char* to, Py_ssize_t at, Py_ssize_t room, RecordPointer record, long long timestamp_delta, long long offset_delta
) noexcept nogil
cdef long long put_large_record(unsigned char* to, RecordPointer record) noexcept nogil
cdef void fill_header(
    unsigned char* to,
    long long size,
    int attributes,
    int record_count,
    long long base_timestamp,
    long long max_timestamp,
    long long producer_id,
    int producer_epoch,
    int base_sequence,
    long long base_offset,
    int leader_epoch,
) noexcept nogil
cpdef bytes encode_headers(object headers)
cdef Py_ssize_t headers_size(object headers) except? -1
cdef Py_ssize_t header_size(Py_ssize_t key_size, Py_ssize_t value_size) noexcept
cdef Py_ssize_t put_plain_headers(unsigned char* to, object headers) noexcept
cdef bint with_plain_headers(RecordPointer record, unsigned char* to, object headers) noexcept
