# Memory outside Python's heap: blocks that an object owns and exports as a buffer, and plain arrays of addresses,
# numbers and objects.  Their contents are undefined until written, and nothing checks bounds.
# Interpreted twin, same names and results: memory.py.

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

cdef extern from "Python.h":
    bytearray PyByteArray_FromStringAndSize(const char* text, Py_ssize_t size)
    int PyBuffer_FillInfo(Py_buffer* view, object owner, void* memory, Py_ssize_t size, int readonly, int flags) except -1


cdef inline unsigned char* new_memory(Py_ssize_t size) except NULL:
    cdef unsigned char* memory = <unsigned char*>PyMem_RawMalloc(<size_t>size)
    if memory is NULL:
        raise MemoryError(f"{size} bytes for a batch")
    return memory


# The first ``had`` bytes stay.  The old address is no longer valid, unless MemoryError is raised.
cdef inline unsigned char* resized_memory(unsigned char* memory, Py_ssize_t had, Py_ssize_t size) except NULL:
    cdef unsigned char* resized = <unsigned char*>PyMem_RawRealloc(memory, <size_t>size)
    if resized is NULL:
        raise MemoryError(f"{size} bytes for a batch")
    return resized


cdef inline void free_memory(unsigned char* memory) noexcept:
    PyMem_RawFree(memory)


cdef inline int show_memory(Py_buffer* view, object owner, unsigned char* memory, Py_ssize_t size, int flags) except -1:
    return PyBuffer_FillInfo(view, owner, memory, size, 0, flags)


cdef inline object whole_view(object owner, unsigned char* memory):
    return memoryview(owner)


# Its bytes are undefined, so the caller writes all of them.  A call of the type would also fill it with zeros.
cdef inline bytearray new_bytearray(Py_ssize_t size):
    return PyByteArray_FromStringAndSize(NULL, size)


# Whether the caller has the only reference.  Without a GIL there is no cheap answer.
cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define forebay_is_unshared(item) 0
    #else
    #define forebay_is_unshared(item) (Py_REFCNT(item) == 1)
    #endif
    """
    bint is_unshared "forebay_is_unshared" (object item) noexcept


# Puts an item into a tuple that is_unshared, as zip() does with its result.  A tuple keeps its hash from 3.14 on.
cdef extern from *:
    """
    static inline void forebay_put_item(PyObject* whole, Py_ssize_t at, PyObject* item) {
        PyObject* old = PyTuple_GET_ITEM(whole, at);
        Py_INCREF(item);
        PyTuple_SET_ITEM(whole, at, item);
    #if PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject*)whole)->ob_hash = -1;
    #endif
        Py_DECREF(old);
    }
    """
    void put_item "forebay_put_item" (object whole, Py_ssize_t at, object item) noexcept


# Plain arrays
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


# Arrays of Python objects.  The array holds a reference to each; the garbage collector does not know it.

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


cdef inline void drop_object(ObjectPointer* array, Py_ssize_t at) noexcept:
    Py_DECREF(<object>array[at])


cdef inline bint is_object_at(ObjectPointer* array, Py_ssize_t at, object item) noexcept:
    return array[at] == <PyObject*>item


cdef inline void drop_objects(ObjectPointer* array, Py_ssize_t count) noexcept:
    cdef Py_ssize_t at
    for at in range(count):
        Py_DECREF(<object>array[at])
    PyMem_RawFree(array)
cdef inline bint same_bytes(const unsigned char* one, const unsigned char* other, Py_ssize_t size) noexcept nogil:
    return memcmp(one, other, size) == 0
