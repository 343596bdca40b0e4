"""Plain functions around every primitive.

Imported it runs on the interpreted twin; ``conftest.py`` also compiles it, which is the only way to call the
compiled ones directly, for they are inline C.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.forebay._runtime.primitives import (
        bytearray_pointer,
        bytes_pointer,
        crc32c,
        crc32c_combined,
        get_int16,
        get_int32,
        get_int64,
        murmur2,
        put_checked,
        put_int8,
        put_int16,
        put_int32,
        put_int64,
        put_raw,
        put_varint,
        utf8_pointer,
        utf8_size,
        varint_size,
        zigzag,
    )
else:
    from forebay._runtime.primitives import (
        bytearray_pointer,
        bytes_pointer,
        crc32c,
        crc32c_combined,
        get_int16,
        get_int32,
        get_int64,
        murmur2,
        put_checked,
        put_int8,
        put_int16,
        put_int32,
        put_int64,
        put_raw,
        put_varint,
        utf8_pointer,
        utf8_size,
        varint_size,
        zigzag,
    )

COMPILED: bool = cython.compiled


def unsigned_varint(value: int) -> bytes:
    number: cython.ulonglong = value
    out: bytearray = bytearray(12)
    end: cython.Py_ssize_t = put_varint(bytearray_pointer(out), 1, number)
    if end - 1 != varint_size(number):
        raise AssertionError(f"{value} takes {end - 1} bytes, not {varint_size(number)}")
    return bytes(out[1:end])


def signed_varint(value: int) -> bytes:
    number: cython.longlong = value
    out: bytearray = bytearray(12)
    end: cython.Py_ssize_t = put_varint(bytearray_pointer(out), 0, zigzag(number))
    return bytes(out[:end])


def integers(value: int) -> bytes:
    """8, 16, 32 and 64 bits of ``value``, one after the other, cut off at each width."""
    number: cython.longlong = value
    out: bytearray = bytearray(15)
    at: cython.Py_ssize_t = put_int8(bytearray_pointer(out), 0, number)
    at = put_int16(bytearray_pointer(out), at, number)
    at = put_int32(bytearray_pointer(out), at, number)
    at = put_int64(bytearray_pointer(out), at, number)
    return bytes(out[:at])


def read_back(data: bytes) -> tuple[int, int, int]:
    return get_int16(bytes_pointer(data), 1), get_int32(bytes_pointer(data), 3), get_int64(bytes_pointer(data), 7)


def copy(data: bytes, at: int) -> bytes:
    out: bytearray = bytearray(at + len(data) + 1)
    end: cython.Py_ssize_t = put_raw(bytearray_pointer(out), at, bytes_pointer(data), len(data))
    if end != at + len(data):
        raise AssertionError(f"copied to {end}, not {at + len(data)}")
    return bytes(out)


def castagnoli(data: bytes, crc: int = 0, at: int = 0) -> int:
    return crc32c(crc, bytes_pointer(data), at, len(data) - at)


def combined(first: int, second: int, size: int) -> int:
    return crc32c_combined(first, second, size)


def murmur(data: bytes) -> int:
    return murmur2(bytes_pointer(data), len(data))


def utf8(text: str) -> bytes:
    size: cython.Py_ssize_t = utf8_size(text)
    out: bytearray = bytearray(size)
    put_raw(bytearray_pointer(out), 0, utf8_pointer(text), size)
    return bytes(out)


def copied_and_checked(data: bytes, crc: int) -> tuple[bytes, int]:
    """A copy behind three bytes of its own, and the checksum continued over it."""
    out: bytearray = bytearray(3 + len(data))
    size: cython.Py_ssize_t = len(data)
    before: cython.longlong = crc
    after: cython.longlong = put_checked(bytearray_pointer(out), 3, bytes_pointer(data), size, before)
    return bytes(out), after
