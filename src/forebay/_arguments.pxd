cpdef int checked_partition(object partition)
cpdef long long checked_timestamp(object timestamp_ms)
cpdef list checked_headers(object headers)
