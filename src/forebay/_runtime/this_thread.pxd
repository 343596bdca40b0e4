# A mark or a count that a thread keeps of itself.  Each module that cimports this has one number of its own, and uses
# it as one of the two.
# Interpreted twin, same names and results: _runtime/this_thread.py.

cdef extern from *:
    """
    static _Thread_local int forebay_of_thread = 0;
    #define forebay_mark_thread() (forebay_of_thread = 1)
    #define forebay_thread_is_marked() (forebay_of_thread != 0)
    #define forebay_count_on_thread(change) ((void)(forebay_of_thread += (change)))
    #define forebay_count_of_thread() (forebay_of_thread)
    """
    void mark_thread "forebay_mark_thread" () noexcept
    bint thread_is_marked "forebay_thread_is_marked" () noexcept
    void count_on_thread "forebay_count_on_thread" (int change) noexcept
    int count_of_thread "forebay_count_of_thread" () noexcept
