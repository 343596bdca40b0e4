cpdef int hash_partition(int kind, bytes key, int count) except? -2
