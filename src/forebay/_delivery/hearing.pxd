from forebay._delivery.result cimport BatchResult


cpdef bint put_mark(BatchResult result, object mark) except? -1
cpdef void hear(BatchResult result, int index) noexcept
