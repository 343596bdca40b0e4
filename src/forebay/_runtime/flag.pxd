# True or False in one byte, where ``bint`` takes four: for classes with thousands of objects.
cdef extern from *:
    ctypedef bint Flag "signed char"
