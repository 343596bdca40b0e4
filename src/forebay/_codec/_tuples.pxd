# A named tuple without its constructor (a Python function) and without a plain tuple to copy from: it is made
# once for each delivery callback.  Interpreted twin: _tuples.py.

from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM


cdef extern from "Python.h":
    ctypedef object (*allocfunc)(PyTypeObject* kind, Py_ssize_t size)
    ctypedef struct TypeWithAlloc "PyTypeObject":
        allocfunc tp_alloc


cdef inline object begin_tuple(object kind, Py_ssize_t size):
    return (<TypeWithAlloc*>kind).tp_alloc(<PyTypeObject*>kind, size)


# Each place once, all of them before anybody else sees the tuple.
cdef inline int put_item(object begun, Py_ssize_t at, object item) noexcept:
    Py_INCREF(item)
    PyTuple_SET_ITEM(begun, at, item)
    return 0


cdef inline object finished_tuple(object kind, object begun):
    return begun
