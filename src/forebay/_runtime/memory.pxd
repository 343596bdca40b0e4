# Plain memory that an object owns and shows by the buffer protocol, without a bytearray in between: 64 bytes less each.
# Interpreted twin: _memory.py.

cdef extern from "Python.h":
    unsigned char* PyMem_RawMalloc(size_t size) noexcept nogil
    void PyMem_RawFree(void* memory) noexcept nogil
    bytearray PyByteArray_FromStringAndSize(const char* text, Py_ssize_t size)
    int PyBuffer_FillInfo(Py_buffer* view, object owner, void* memory, Py_ssize_t size, int readonly, int flags) except -1


cdef inline unsigned char* new_memory(Py_ssize_t size) except NULL:
    cdef unsigned char* memory = PyMem_RawMalloc(<size_t>size)
    if memory is NULL:
        raise MemoryError(f"{size} bytes for a batch")
    return memory


cdef inline void free_memory(unsigned char* memory) noexcept:
    PyMem_RawFree(memory)


cdef inline int show_memory(Py_buffer* view, object owner, unsigned char* memory, Py_ssize_t size, int flags) except -1:
    return PyBuffer_FillInfo(view, owner, memory, size, 0, flags)


cdef inline object whole_view(object owner, unsigned char* memory):
    return memoryview(owner)


# Its bytes are whatever was there before: for who writes all of them.  By a call of the type it costs four times as much.
cdef inline bytearray new_bytearray(Py_ssize_t size):
    return PyByteArray_FromStringAndSize(NULL, size)


# Whether the one reference that its caller has is the only one there is.  Without a GIL nobody can tell so cheaply.
cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define forebay_is_unshared(item) 0
    #else
    #define forebay_is_unshared(item) (Py_REFCNT(item) == 1)
    #endif
    """
    bint is_unshared "forebay_is_unshared" (object item) noexcept
