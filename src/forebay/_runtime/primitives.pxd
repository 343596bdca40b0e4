# The primitives that have no Python spelling: addresses, copies, big-endian stores, CRC-32C, murmur2.
# Interpreted twin, same names and results: primitives.py.  Nothing here checks bounds; callers size first.

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from cpython.ref cimport PyObject


cdef extern from "Python.h":
    const unsigned char* bytes_pointer "(const unsigned char*)PyBytes_AS_STRING" (object)
    # For a field that points into bytes or a bytearray; bytes are never written to.
    unsigned char* kept_bytes_pointer "(unsigned char*)PyBytes_AS_STRING" (object)
    unsigned char* bytearray_pointer "(unsigned char*)PyByteArray_AS_STRING" (object)


cdef extern from "crc32c.h" nogil:
    uint32_t forebay_crc32c(uint32_t crc, const unsigned char* data, size_t size) noexcept
    uint32_t forebay_crc32c_combined(uint32_t first, uint32_t second, size_t size) noexcept


cdef inline unsigned char* bytearray_pointer_at(object data, Py_ssize_t offset) noexcept:
    return bytearray_pointer(data) + offset


cdef inline const unsigned char* no_bytes() noexcept nogil:
    return NULL


cdef inline Py_ssize_t put_raw(unsigned char* to, Py_ssize_t at, const unsigned char* source, Py_ssize_t size) noexcept nogil:
    memcpy(to + at, source, size)
    return at + size


# Copies what is larger than the processor's own cache, and continues a CRC-32C over it, in pieces that stay in there: read
# again later it would come from memory.
cdef inline long long put_checked(
    unsigned char* to, Py_ssize_t at, const unsigned char* source, Py_ssize_t size, long long crc
) noexcept nogil:
    cdef Py_ssize_t piece
    while size > 0:
        piece = min(size, <Py_ssize_t>8192)
        memcpy(to + at, source, piece)
        crc = forebay_crc32c(<uint32_t>crc, to + at, piece)
        at += piece
        source += piece
        size -= piece
    return crc


cdef extern from *:
    """
    #define forebay_prefetch(memory, at) __builtin_prefetch((memory) + (at))
    """
    # Asks for memory that is read soon; any address will do.
    void prefetch "forebay_prefetch" (const unsigned char* memory, Py_ssize_t at) noexcept nogil


cdef inline bytes bytes_at(const unsigned char* source, Py_ssize_t at, Py_ssize_t size):
    return source[at:at + size]


cdef inline Py_ssize_t put_varint(unsigned char* to, Py_ssize_t at, unsigned long long value) noexcept nogil:
    while value > 0x7F:
        to[at] = <uint8_t>(value & 0x7F) | 0x80
        value >>= 7
        at += 1
    to[at] = <uint8_t>value
    return at + 1


cdef inline unsigned long long zigzag(long long value) noexcept nogil:
    return (<unsigned long long>value << 1) ^ <unsigned long long>(value >> 63)


cdef inline Py_ssize_t varint_size(unsigned long long value) noexcept nogil:
    cdef Py_ssize_t size = 1
    while value > 0x7F:
        value >>= 7
        size += 1
    return size


cdef inline Py_ssize_t put_int8(unsigned char* to, Py_ssize_t at, long long value) noexcept nogil:
    to[at] = <uint8_t>value
    return at + 1


cdef inline Py_ssize_t put_int16(unsigned char* to, Py_ssize_t at, long long value) noexcept nogil:
    to[at] = <uint8_t>(value >> 8)
    to[at + 1] = <uint8_t>value
    return at + 2


cdef inline Py_ssize_t put_int32(unsigned char* to, Py_ssize_t at, long long value) noexcept nogil:
    to[at] = <uint8_t>(value >> 24)
    to[at + 1] = <uint8_t>(value >> 16)
    to[at + 2] = <uint8_t>(value >> 8)
    to[at + 3] = <uint8_t>value
    return at + 4


cdef inline Py_ssize_t put_int64(unsigned char* to, Py_ssize_t at, long long value) noexcept nogil:
    put_int32(to, at, value >> 32)
    return put_int32(to, at + 4, value)


cdef inline long long get_int16(const unsigned char* source, Py_ssize_t at) noexcept nogil:
    return <int16_t>((<uint32_t>source[at] << 8) | source[at + 1])


cdef inline long long get_int32(const unsigned char* source, Py_ssize_t at) noexcept nogil:
    return <int32_t>(
        (<uint32_t>source[at] << 24) | (<uint32_t>source[at + 1] << 16) | (<uint32_t>source[at + 2] << 8) | source[at + 3]
    )


cdef inline long long get_int64(const unsigned char* source, Py_ssize_t at) noexcept nogil:
    cdef uint64_t high = <uint32_t>get_int32(source, at)
    cdef uint64_t low = <uint32_t>get_int32(source, at + 4)
    return <int64_t>((high << 32) | low)


cdef inline long long crc32c(long long crc, const unsigned char* data, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    return forebay_crc32c(<uint32_t>crc, data + at, size)


# The checksum of two adjacent pieces, from the checksum of each; ``size`` is that of the second piece.
cdef inline long long crc32c_combined(long long first, long long second, Py_ssize_t size) noexcept nogil:
    return forebay_crc32c_combined(<uint32_t>first, <uint32_t>second, size)


cdef inline long long murmur2(const unsigned char* data, Py_ssize_t size) noexcept nogil:
    # Kafka's variant: seed 0x9747b28c, result as an unsigned 32-bit number.
    cdef uint32_t m = 0x5BD1E995
    cdef uint32_t h = <uint32_t>0x9747B28C ^ <uint32_t>size
    cdef uint32_t k
    cdef Py_ssize_t at = 0
    while size - at >= 4:
        k = data[at] | (<uint32_t>data[at + 1] << 8) | (<uint32_t>data[at + 2] << 16) | (<uint32_t>data[at + 3] << 24)
        k *= m
        k ^= k >> 24
        k *= m
        h *= m
        h ^= k
        at += 4
    if size - at == 3:
        h ^= <uint32_t>data[at + 2] << 16
    if size - at >= 2:
        h ^= <uint32_t>data[at + 1] << 8
    if size - at >= 1:
        h ^= data[at]
        h *= m
    h ^= h >> 13
    h *= m
    h ^= h >> 15
    return h


cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cdef inline Py_ssize_t utf8_size(object text) except -1:
    cdef Py_ssize_t size = 0
    PyUnicode_AsUTF8AndSize(text, &size)
    return size


# The bytes live as long as the string does (CPython caches the encoding in it).
cdef inline const unsigned char* utf8_pointer(object text) except NULL:
    cdef Py_ssize_t size = 0
    return <const unsigned char*>PyUnicode_AsUTF8AndSize(text, &size)


# One record on its way into a batch: addresses and sizes (-1 for null), headers encoded.  It owns nothing.  The caller
# keeps the objects alive until the append returns.
cdef struct RecordView:
    long long timestamp
    const unsigned char* key
    Py_ssize_t key_size
    const unsigned char* value
    Py_ssize_t value_size
    const unsigned char* headers
    Py_ssize_t headers_size


ctypedef RecordView* RecordPointer


cdef extern from *:
    # Passed by address, because a record passes through several functions.
    RecordPointer view_of "&" (RecordView record) noexcept nogil


# For bytes or None: the address, and the size with -1 for None.
cdef inline const unsigned char* optional_pointer(object data) noexcept:
    if data is None:
        return NULL
    return bytes_pointer(data)


cdef inline Py_ssize_t optional_size(object data) noexcept:
    return -1 if data is None else Py_SIZE(data)


cdef extern from "Python.h":
    Py_ssize_t Py_SIZE(object)
    object fresh_bytes "PyBytes_FromStringAndSize" (const char* contents, Py_ssize_t size)


# Bytes that are written once, before any other code has them.
cdef inline object bytes_of(Py_ssize_t size):
    return fresh_bytes(NULL, size)


cdef inline unsigned char* writable_pointer(object fresh) noexcept:
    return <unsigned char*>bytes_pointer(fresh)


cdef inline object finished_bytes(object fresh):
    return fresh


cdef enum:
    MAX_INT32 = 0x7FFFFFFF
    SECTION_ROOM = 512
    MAX_VARINT = 5


# Room for a short header section, written before its size is known.  It is on the stack, because a Python object would
# cost more than the writing.
cdef struct SectionRoom:
    unsigned char first[SECTION_ROOM]


cdef extern from *:
    unsigned char* section_pointer "(unsigned char*)&" (SectionRoom room) noexcept nogil


cdef extern from "Python.h":
    bint is_tuple "PyTuple_CheckExact" (object) noexcept
    Py_ssize_t tuple_size "PyTuple_GET_SIZE" (object) noexcept
    PyObject* item_of "PyTuple_GET_ITEM" (object, Py_ssize_t) noexcept
    bint is_text "PyUnicode_CheckExact" (PyObject*) noexcept
    bint is_ascii_text "PyUnicode_IS_ASCII" (PyObject*) noexcept
    Py_ssize_t text_size "PyUnicode_GET_LENGTH" (PyObject*) noexcept
    const unsigned char* text_pointer "(const unsigned char *)PyUnicode_DATA" (PyObject*) noexcept
    bint is_none "Py_IsNone" (PyObject*) noexcept
    bint is_bytes "PyBytes_CheckExact" (PyObject*) noexcept
    Py_ssize_t size_of_bytes "PyBytes_GET_SIZE" (PyObject*) noexcept
    const unsigned char* start_of_bytes "(const unsigned char*)PyBytes_AS_STRING" (PyObject*) noexcept


# Writes the header ``pair`` and returns its end; -1 if it is no tuple of ASCII text and bytes (or None), or does not fit
# before ``until``.  The tuple keeps its items alive, so they need no further references here.
cdef inline Py_ssize_t put_plain_header(unsigned char* to, Py_ssize_t at, Py_ssize_t until, object pair) noexcept:
    if not is_tuple(pair) or tuple_size(pair) != 2:
        return -1
    cdef PyObject* key = item_of(pair, 0)
    cdef PyObject* value = item_of(pair, 1)
    cdef Py_ssize_t value_size = -1
    if not is_text(key) or not is_ascii_text(key):
        return -1
    if not is_none(value):
        if not is_bytes(value):
            return -1
        value_size = size_of_bytes(value)
    cdef Py_ssize_t key_size = text_size(key)
    if at + 2 * MAX_VARINT + key_size + value_size > until:
        return -1
    at = put_raw(to, put_varint(to, at, zigzag(key_size)), text_pointer(key), key_size)
    at = put_varint(to, at, zigzag(value_size))
    return put_raw(to, at, start_of_bytes(value), value_size) if value_size > 0 else at


cdef inline RecordView record_view(long long timestamp, object key, object value, object section) noexcept:
    cdef RecordView view
    view.timestamp = timestamp
    view.key = optional_pointer(key)
    view.key_size = optional_size(key)
    view.value = optional_pointer(value)
    view.value_size = optional_size(value)
    view.headers = bytes_pointer(section)
    view.headers_size = Py_SIZE(section)
    return view
