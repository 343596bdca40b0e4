# A lock for a few lines, taken and released with the GIL; the holder may give the GIL up in between.  As a field of a
# compiled class it begins as zero, which is free.  Interpreted twin: _runtime/mutex.py.

cdef extern from "mutex.h":
    ctypedef struct Mutex "forebay_mutex":
        pass
    # Macros that take the lock itself, not a copy.
    void acquire "forebay_acquire" (Mutex lock) noexcept
    void release "forebay_release" (Mutex lock) noexcept
    const bint HAS_GIL "forebay_has_gil"
    # For a thread that has just released the lock after some time, and will take it again.
    void give_way "forebay_give_way" (Mutex lock) noexcept

cdef extern from "Python.h":
    # The calling thread's number.
    unsigned long thread_ident "PyThread_get_thread_ident" () noexcept
