cdef list framed(int api_key, int version, bint flexible, int correlation_id, bytes name, list body)
