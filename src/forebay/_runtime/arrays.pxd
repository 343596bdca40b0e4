# Plain arrays outside Python's heap: addresses and numbers of many rows.
# Interpreted twin, same names and results: _arrays.py.  Contents are undefined until written; nothing here checks bounds.

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.string cimport memcmp


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


cdef inline long long* no_numbers() noexcept:
    return NULL


cdef inline long long* more_numbers(long long* array, Py_ssize_t had, Py_ssize_t count) except NULL:
    cdef void* memory = PyMem_RawRealloc(array, count * sizeof(long long))
    if memory == NULL:
        raise MemoryError()
    return <long long*>memory


# Of Python objects, each of which the array holds a reference to; not known to the garbage collector.

ctypedef PyObject* ObjectPointer


cdef inline ObjectPointer* no_objects() noexcept:
    return NULL


cdef inline ObjectPointer* more_objects(ObjectPointer* array, Py_ssize_t had, Py_ssize_t count) except NULL:
    cdef void* memory = PyMem_RawRealloc(array, count * sizeof(ObjectPointer))
    if memory == NULL:
        raise MemoryError()
    return <ObjectPointer*>memory


cdef inline void put_object(ObjectPointer* array, Py_ssize_t at, object item) noexcept:
    Py_INCREF(item)
    array[at] = <PyObject*>item


cdef inline object object_at(ObjectPointer* array, Py_ssize_t at):
    return <object>array[at]


cdef inline bint is_object_at(ObjectPointer* array, Py_ssize_t at, object item) noexcept:
    return array[at] == <PyObject*>item


cdef inline void drop_objects(ObjectPointer* array, Py_ssize_t count) noexcept:
    cdef Py_ssize_t at
    for at in range(count):
        Py_DECREF(<object>array[at])
    PyMem_RawFree(array)
cdef inline bint same_bytes(const unsigned char* one, const unsigned char* other, Py_ssize_t size) noexcept nogil:
    return memcmp(one, other, size) == 0
