# A named tuple without its constructor (a Python function) and without a plain tuple to copy from: it is made
# once for each delivery callback.  Interpreted twin: _tuples.py.

from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM


cdef extern from *:
    """
    /* Since 3.14 a tuple keeps its hash, and memory from tp_alloc, which is zero, would be taken for one. */
    #if PY_VERSION_HEX >= 0x030E0000
    #define forebay_unhashed(begun) ((void)(((PyTupleObject *)(begun))->ob_hash = -1))
    #else
    #define forebay_unhashed(begun) ((void)(begun))
    #endif
    """
    void unhashed "forebay_unhashed" (object begun) noexcept


cdef extern from "Python.h":
    ctypedef object (*allocfunc)(PyTypeObject* kind, Py_ssize_t size)
    ctypedef struct TypeWithAlloc "PyTypeObject":
        allocfunc tp_alloc


cdef inline object begin_tuple(object kind, Py_ssize_t size):
    cdef object begun = (<TypeWithAlloc*>kind).tp_alloc(<PyTypeObject*>kind, size)
    unhashed(begun)
    return begun


# Each place once, all of them before anybody else sees the tuple.
cdef inline int put_item(object begun, Py_ssize_t at, object item) noexcept:
    Py_INCREF(item)
    PyTuple_SET_ITEM(begun, at, item)
    return 0


cdef inline object finished_tuple(object kind, object begun):
    return begun
