cdef Py_ssize_t record_body_size(
    long long timestamp_delta, long long offset_delta, Py_ssize_t key_size, Py_ssize_t value_size, Py_ssize_t headers_size
) noexcept nogil
cdef Py_ssize_t record_size(Py_ssize_t body_size) noexcept nogil
cdef Py_ssize_t write_record(
    unsigned char* to,
    Py_ssize_t at,
    Py_ssize_t body_size,
    long long timestamp_delta,
    long long offset_delta,
    const unsigned char* key,
    Py_ssize_t key_size,
    const unsigned char* value,
    Py_ssize_t value_size,
    const unsigned char* headers,
    Py_ssize_t headers_size,
) noexcept nogil
cpdef bytearray encode_headers(object headers)
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
