# Arrow's C data interface as it lies in memory: the three structs, and loads from addresses.
# Interpreted twin, same names and results: abi.py.  An address is a size_t; 0 is "not there".
# Nothing here checks bounds or life time; callers hold what owns the memory.

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t


cdef struct ArrowSchema:
    const char* format
    const char* name
    const char* metadata
    int64_t flags
    int64_t n_children
    ArrowSchema** children
    ArrowSchema* dictionary
    void (*release)(ArrowSchema*) noexcept nogil
    void* private_data


cdef struct ArrowArray:
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void** buffers
    ArrowArray** children
    ArrowArray* dictionary
    void (*release)(ArrowArray*) noexcept nogil
    void* private_data


cdef struct ArrowArrayStream:
    int (*get_schema)(ArrowArrayStream*, ArrowSchema*) noexcept nogil
    int (*get_next)(ArrowArrayStream*, ArrowArray*) noexcept nogil
    const char* (*get_last_error)(ArrowArrayStream*) noexcept nogil
    void (*release)(ArrowArrayStream*) noexcept nogil
    void* private_data


cdef inline size_t capsule_address(object capsule, bytes name) except 0:
    return <size_t>PyCapsule_GetPointer(capsule, name)


cdef inline bytes schema_format(size_t schema):
    return (<ArrowSchema*>schema).format


cdef inline bytes schema_name(size_t schema):
    cdef const char* name = (<ArrowSchema*>schema).name
    return b"" if name == NULL else name


cdef inline size_t schema_metadata(size_t schema) noexcept nogil:
    return <size_t>(<ArrowSchema*>schema).metadata


cdef inline long long schema_child_count(size_t schema) noexcept nogil:
    return (<ArrowSchema*>schema).n_children


cdef inline size_t schema_child(size_t schema, Py_ssize_t at) noexcept nogil:
    return <size_t>(<ArrowSchema*>schema).children[at]


cdef inline size_t schema_dictionary(size_t schema) noexcept nogil:
    return <size_t>(<ArrowSchema*>schema).dictionary


cdef inline long long array_length(size_t array) noexcept nogil:
    return (<ArrowArray*>array).length


cdef inline long long array_offset(size_t array) noexcept nogil:
    return (<ArrowArray*>array).offset


cdef inline size_t array_buffer(size_t array, Py_ssize_t at) noexcept nogil:
    return <size_t>(<ArrowArray*>array).buffers[at]


cdef inline size_t array_buffers(size_t array) noexcept nogil:
    return <size_t>(<ArrowArray*>array).buffers


cdef inline size_t array_child(size_t array, Py_ssize_t at) noexcept nogil:
    return <size_t>(<ArrowArray*>array).children[at]


cdef inline size_t array_dictionary(size_t array) noexcept nogil:
    return <size_t>(<ArrowArray*>array).dictionary


cdef inline bint array_released(size_t array) noexcept nogil:
    return (<ArrowArray*>array).release == NULL


cdef inline size_t new_array() noexcept:
    return <size_t>PyMem_RawCalloc(1, sizeof(ArrowArray))


cdef inline size_t new_schema() noexcept:
    return <size_t>PyMem_RawCalloc(1, sizeof(ArrowSchema))


cdef inline void drop_array(size_t array) noexcept:
    if (<ArrowArray*>array).release != NULL:
        (<ArrowArray*>array).release(<ArrowArray*>array)
    PyMem_RawFree(<void*>array)


cdef inline void drop_schema(size_t schema) noexcept:
    if (<ArrowSchema*>schema).release != NULL:
        (<ArrowSchema*>schema).release(<ArrowSchema*>schema)
    PyMem_RawFree(<void*>schema)


cdef inline int stream_schema(size_t stream, size_t schema) noexcept:
    cdef int code
    with nogil:
        code = (<ArrowArrayStream*>stream).get_schema(<ArrowArrayStream*>stream, <ArrowSchema*>schema)
    return code


cdef inline int stream_next(size_t stream, size_t array) noexcept:
    cdef int code
    with nogil:
        code = (<ArrowArrayStream*>stream).get_next(<ArrowArrayStream*>stream, <ArrowArray*>array)
    return code


cdef inline bytes stream_error(size_t stream):
    cdef const char* text = (<ArrowArrayStream*>stream).get_last_error(<ArrowArrayStream*>stream)
    return b"" if text == NULL else text


cdef inline bint bit_at(size_t bitmap, long long at) noexcept nogil:
    return ((<const uint8_t*>bitmap)[at >> 3] >> (at & 7)) & 1


cdef inline long long load_integer(size_t base, long long at, int width) noexcept nogil:
    # width: bytes of an element, negative if it is unsigned.
    if width == 4:
        return (<const int32_t*>base)[at]
    if width == 8:
        return (<const int64_t*>base)[at]
    if width == 1:
        return (<const int8_t*>base)[at]
    if width == 2:
        return (<const int16_t*>base)[at]
    if width == -1:
        return (<const uint8_t*>base)[at]
    if width == -2:
        return (<const uint16_t*>base)[at]
    return (<const uint32_t*>base)[at]


cdef inline size_t load_address(size_t base, long long at) noexcept nogil:
    return (<const size_t*>base)[at]


cdef inline const unsigned char* pointer_to(size_t address, Py_ssize_t size) noexcept nogil:
    return <const unsigned char*>address


cdef enum:                 # CellSource.layout; abi.py says what each is
    ALL_NULL = 0
    VARIABLE = 1
    FIXED = 2
    VIEW = 3
    DICTIONARY = 4
    STRIPPED = 5
    OBJECTS = 6
    RUNS = 7


# One column of byte strings in any layout, for readers without the GIL.  The code that made it keeps the memory alive
# that it points to.
cdef struct CellSource:
    int layout
    int width
    long long offset
    long long stride
    size_t validity
    size_t offsets
    size_t data
    size_t buffers
    CellSource* values
    long long runs
    long long run
    const unsigned char** addresses
    long long* sizes
    const unsigned char* found


cdef inline CellSource* new_cells() except NULL:
    cdef CellSource* source = <CellSource*>PyMem_RawCalloc(1, sizeof(CellSource))
    if source == NULL:
        raise MemoryError()
    return source


cdef inline void drop_cells(CellSource* source) noexcept:
    PyMem_RawFree(source)
