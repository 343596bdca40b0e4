# Plain arrays outside Python's heap: addresses and numbers of many rows.
# Interpreted twin, same names and results: _arrays.py.  Contents are undefined until written; nothing here checks bounds.

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc


cdef inline const unsigned char** new_addresses(Py_ssize_t count) except NULL:
    cdef void* memory = PyMem_RawMalloc(count * sizeof(void*))
    if memory == NULL:
        raise MemoryError()
    return <const unsigned char**>memory


cdef inline long long* new_numbers(Py_ssize_t count) except NULL:
    cdef void* memory = PyMem_RawMalloc(count * sizeof(long long))
    if memory == NULL:
        raise MemoryError()
    return <long long*>memory


cdef inline void drop_addresses(const unsigned char** array) noexcept:
    PyMem_RawFree(<void*>array)


cdef inline void drop_numbers(long long* array) noexcept:
    PyMem_RawFree(array)
