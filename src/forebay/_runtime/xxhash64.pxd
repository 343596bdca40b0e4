# XXH64 over an address; unsigned, as the seed is.  Interpreted twin: xxhash64.py.  A file of its own, so that a module
# that hashes no rows is not compiled anew with it.

from libc.stdint cimport uint64_t


cdef extern from "xxhash64.h" nogil:
    uint64_t forebay_xxhash64(uint64_t seed, const unsigned char* data, size_t size) noexcept


cdef inline unsigned long long xxhash64(unsigned long long seed, const unsigned char* data, Py_ssize_t size) noexcept nogil:
    return forebay_xxhash64(seed, data, size)
