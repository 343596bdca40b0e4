# A mark, or a count, that a thread keeps of itself, for one module alone: each that cimports it has its own.
# Interpreted twin, same names and results: _this_thread.py.

cdef extern from *:
    """
    static _Thread_local int forebay_marked = 0;
    #define forebay_mark_thread() (forebay_marked = 1)
    #define forebay_thread_is_marked() (forebay_marked)
    static _Thread_local int forebay_counted = 0;
    #define forebay_count_on_thread(change) ((void)(forebay_counted += (change)))
    #define forebay_count_of_thread() (forebay_counted)
    """
    void mark_thread "forebay_mark_thread" () noexcept
    bint thread_is_marked "forebay_thread_is_marked" () noexcept
    void count_on_thread "forebay_count_on_thread" (int change) noexcept
    int count_of_thread "forebay_count_of_thread" () noexcept
