# True or False in one byte, where ``bint`` takes four: for classes of which thousands wait.
cdef extern from *:
    ctypedef bint Flag "signed char"
