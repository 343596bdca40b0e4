# A binary heap of objects by the time at which each is due, and of the same time by the order in which they came: an
# array outside Python's heap, so that putting one in makes nothing, and finding its place touches no object.
# Interpreted twin, same names and results: _due_heap.py.  Nothing here checks bounds.  It holds a reference to each object,
# which the garbage collector does not know of.

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

cdef struct DueEntry:
    double due
    long long number
    PyObject* item


cdef inline DueEntry* no_entries() noexcept:
    return NULL


cdef inline DueEntry* more_entries(DueEntry* heap, Py_ssize_t count) except NULL:
    cdef void* memory = PyMem_RawRealloc(heap, count * sizeof(DueEntry))
    if memory == NULL:
        raise MemoryError()
    return <DueEntry*>memory


cdef inline void drop_entries(DueEntry* heap, Py_ssize_t count) noexcept:
    cdef Py_ssize_t at
    for at in range(count):
        Py_DECREF(<object>heap[at].item)
    PyMem_RawFree(heap)


cdef inline bint _before(const DueEntry* one, const DueEntry* other) noexcept nogil:
    return one.due < other.due or (one.due == other.due and one.number < other.number)


# Of a heap of ``count`` entries, which has room for one more.
cdef inline void put_entry(DueEntry* heap, Py_ssize_t count, double due, long long number, object item) noexcept:
    cdef DueEntry entry
    cdef Py_ssize_t at = count
    cdef Py_ssize_t above
    entry.due = due
    entry.number = number
    entry.item = <PyObject*>item
    Py_INCREF(item)
    while at > 0:
        above = (at - 1) >> 1
        if not _before(&entry, &heap[above]):
            break
        heap[at] = heap[above]
        at = above
    heap[at] = entry


# Of a heap of ``count`` entries, at least one.
cdef inline void take_entry(DueEntry* heap, Py_ssize_t count) noexcept:
    cdef PyObject* item = heap[0].item
    cdef Py_ssize_t last = count - 1
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t below = 1
    while below < last:
        if below + 1 < last and _before(&heap[below + 1], &heap[below]):
            below += 1
        if not _before(&heap[below], &heap[last]):
            break
        heap[at] = heap[below]
        at = below
        below = 2 * at + 1
    heap[at] = heap[last]
    Py_DECREF(<object>item)


cdef inline double first_due(const DueEntry* heap) noexcept:
    return heap[0].due


cdef inline object first_item(const DueEntry* heap):
    return <object>heap[0].item


cdef inline object item_at(const DueEntry* heap, Py_ssize_t at):
    return <object>heap[at].item


# ``count``, as whoever uses the heap keeps it: an interrupt cannot come between its steps here.
cdef inline Py_ssize_t entry_count(const DueEntry* heap, Py_ssize_t count) noexcept:
    return count
