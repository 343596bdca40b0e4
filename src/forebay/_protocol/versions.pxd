# Numbers of versions.py that compiled code needs, as constants.  A test compares the two.

cdef enum:
    NEWEST_PRODUCE = 13
    FIRST_PRODUCE_BY_ID = 13
