# A mark that a thread puts on itself, for one module alone: each that cimports it has marks of its own.
# Interpreted twin, same names and results: _runtime/this_thread.py.

cdef extern from *:
    """
    static _Thread_local int forebay_marked = 0;
    #define forebay_mark_thread() (forebay_marked = 1)
    #define forebay_thread_is_marked() (forebay_marked)
    """
    void mark_thread "forebay_mark_thread" () noexcept
    bint thread_is_marked "forebay_thread_is_marked" () noexcept
