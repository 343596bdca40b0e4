# Lists that hold one item or two most of the time, with one put in and taken out at each request.  Python's own calls give
# a short list's memory back when it gets empty and ask for it again with the next item, 700 instructions for the two;
# these leave it as it is.  Interpreted twin, same names and results: _lists.py.

cdef extern from *:
    """
    #define FOREBAY_SHORT 8  /* items; a longer list shrinks as ever */

    #ifdef Py_GIL_DISABLED  /* not every list here has a lock of ours: Python's own calls have one */
    #define forebay_put_item PyList_Append

    static inline PyObject* forebay_take_item(PyObject* items, Py_ssize_t at) {
        return PyObject_CallMethod(items, "pop", "n", at);
    }
    #else
    static inline int forebay_put_item(PyObject* items, PyObject* item) {
        PyListObject* list = (PyListObject*)items;
        Py_ssize_t size = PyList_GET_SIZE(items);
        if (size >= list->allocated) return PyList_Append(items, item);
        Py_INCREF(item);
        list->ob_item[size] = item;
        Py_SET_SIZE(list, size + 1);
        return 0;
    }

    static inline PyObject* forebay_take_item(PyObject* items, Py_ssize_t at) {
        PyListObject* list = (PyListObject*)items;
        Py_ssize_t left = PyList_GET_SIZE(items) - 1;
        PyObject* item;
        if (at < 0 || at > left) {
            PyErr_SetString(PyExc_IndexError, "no such item to take");
            return NULL;
        }
        item = list->ob_item[at];
        if (list->allocated > FOREBAY_SHORT && left < (list->allocated >> 1)) {
            Py_INCREF(item);
            if (PyList_SetSlice(items, at, at + 1, NULL) == 0) return item;
            Py_DECREF(item);
            return NULL;
        }
        memmove(list->ob_item + at, list->ob_item + at + 1, (left - at) * sizeof(PyObject*));
        Py_SET_SIZE(list, left);
        return item;
    }
    #endif
    """
    int put_item "forebay_put_item" (list items, object item) except -1
    object take_item "forebay_take_item" (list items, Py_ssize_t at)
