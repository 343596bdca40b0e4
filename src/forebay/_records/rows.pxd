from forebay._arrow.columns cimport BytesColumn
from forebay._arrow.headers cimport HeadersColumn
from forebay._arrow.abi cimport CellSource


cdef class Cells:
    cdef const unsigned char** addresses
    cdef long long* sizes
    cdef Py_ssize_t alike
    cdef void fill(self, BytesColumn column, Py_ssize_t row, Py_ssize_t count)
    cdef void fill_with(self, Py_ssize_t count, const unsigned char* address, long long size) noexcept


# Columns fill the first fields.  A section without the GIL can use no object, so the arrays of the three Cells are here
# a second time.
cdef class RowWindow:
    cdef readonly Py_ssize_t capacity
    cdef readonly Cells keys
    cdef readonly Cells values
    cdef readonly Cells headers
    cdef const unsigned char** key_cells
    cdef long long* key_sizes
    cdef const unsigned char** value_cells
    cdef long long* value_sizes
    cdef const unsigned char** header_cells
    cdef long long* header_sizes
    cdef long long* timestamps
    cdef long long* partitions
    cdef long long* topics
    cdef long long* limits
    cdef long long* order
    cdef long long* sorted
    cdef long long* ends
    cdef Py_ssize_t ends_size
    cdef bytearray sections
    cdef bint ordered
    cdef bint values_only
    # How much ``write`` may write beside what the memory has room for; see there.
    cdef Py_ssize_t raw_size
    cdef double ratio
    cdef double margin
    cdef Py_ssize_t limit
    # Results of ``write`` and of the batch that took the rows, for the caller.
    cdef object taker
    cdef int first_index
    cdef bint filled
    cdef Py_ssize_t written
    cdef Py_ssize_t taken
    cdef Py_ssize_t position
    cdef Py_ssize_t largest
    cdef long long latest
    cdef Py_ssize_t checked
    cdef long long checksum
    cdef void partition_by_key(self, Py_ssize_t count) noexcept nogil
    cdef void keep_order(self, Py_ssize_t count) noexcept nogil
    cdef void make_ends(self, Py_ssize_t groups)
    cdef void sort_by_topic(self, Py_ssize_t count, Py_ssize_t topics)
    cdef void sort_by_partition(self, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t partition_count)
    cdef void sort(
        self, long long* numbers, long long shift, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t groups
    ) noexcept nogil
    cdef Py_ssize_t fill_headers(
        self, HeadersColumn column, Py_ssize_t row, Py_ssize_t count, Py_ssize_t most
    ) except -1
    cdef void write_headers(
        self, HeadersColumn column, Py_ssize_t row, Py_ssize_t count, unsigned char* to
    ) noexcept nogil
    cdef Py_ssize_t write_checked(
        self,
        Py_ssize_t at,
        Py_ssize_t until,
        unsigned char* to,
        Py_ssize_t capacity,
        long long base_timestamp,
        long long first_offset,
    ) noexcept nogil
    cdef Py_ssize_t write(
        self,
        Py_ssize_t at,
        Py_ssize_t until,
        unsigned char* to,
        Py_ssize_t capacity,
        long long base_timestamp,
        long long first_offset,
    ) noexcept nogil
    cdef Py_ssize_t write_values(
        self,
        Py_ssize_t at,
        Py_ssize_t until,
        unsigned char* to,
        Py_ssize_t capacity,
        long long delta,
        long long offset,
    ) noexcept nogil
