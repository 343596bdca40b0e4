cdef str plain_name(object topic)
cpdef int checked_partition(object partition) except? -1
cpdef long long checked_timestamp(object timestamp) except? -1
cpdef list listed_headers(object headers)
cpdef list checked_headers(object headers)
