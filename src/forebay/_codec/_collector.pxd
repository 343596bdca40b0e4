# The garbage collector held off for a few lines.  From Python 3.12 on it runs between two instructions of interpreted
# Python alone, and compiled code need not care.  Twin: _collector.py.

cdef extern from *:
    """
    #include <Python.h>

    #if PY_VERSION_HEX < 0x030C0000
    #define forebay_pause_collector() PyGC_Disable()
    static inline void forebay_resume_collector(int was_on) { if (was_on) PyGC_Enable(); }
    #else
    #define forebay_pause_collector() 0
    #define forebay_resume_collector(was_on) ((void)(was_on))
    #endif
    """
    int pause_collector "forebay_pause_collector" () noexcept
    void resume_collector "forebay_resume_collector" (int was_on) noexcept
