# The number of primitives.py that compiled code needs, as a constant.  A test compares the two.

cdef enum:
    UUID_SIZE = 16
