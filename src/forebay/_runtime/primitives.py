"""The interpreted twin of ``primitives.pxd``: the same names and results, on memoryviews and bytes.

A "pointer" is a writable memoryview or any bytes-like object.  Nothing here checks bounds, as in the compiled form.
The package ``crc32c``, a development dependency, computes the checksum here, and so checks the compiled form's.
"""

from __future__ import annotations

from typing import Any

# Imported here, because the function runs under a lock, where an import may wait for another greenlet.
from crc32c import crc32c as _checksum

MAX_INT32 = 0x7FFFFFFF
MASK32 = 0xFFFFFFFF
MASK64 = 0xFFFFFFFFFFFFFFFF


def bytes_pointer(data: bytes) -> Any:
    return data


def kept_bytes_pointer(data: bytes) -> Any:
    return data


def bytearray_pointer(data: bytearray) -> Any:
    return memoryview(data)


def bytearray_pointer_at(data: bytearray, offset: int) -> Any:
    return memoryview(data)[offset:]


def no_bytes() -> Any:
    return b""


def put_raw(to: Any, at: int, source: Any, size: int) -> int:
    to[at : at + size] = source[:size]
    return at + size


def put_checked(to: Any, at: int, source: Any, size: int, crc: int) -> int:
    return crc32c(crc, to, at, put_raw(to, at, source, size) - at)


def bytes_at(source: Any, at: int, size: int) -> bytes:
    return bytes(source[at : at + size])


def prefetch(memory: Any, at: int) -> None:
    """Nothing to do."""


def put_varint(to: Any, at: int, value: int) -> int:
    while value > 0x7F:
        to[at] = (value & 0x7F) | 0x80
        value >>= 7
        at += 1
    to[at] = value
    return at + 1


def zigzag(value: int) -> int:
    # A value of more than 64 bits wraps: the difference of two timestamps may be one.
    return ((value << 1) ^ -((value >> 63) & 1)) & MASK64


def varint_size(value: int) -> int:
    return max(1, (value.bit_length() + 6) // 7)


def put_int8(to: Any, at: int, value: int) -> int:
    to[at] = value & 0xFF
    return at + 1


def put_int16(to: Any, at: int, value: int) -> int:
    to[at : at + 2] = (value & 0xFFFF).to_bytes(2, "big")
    return at + 2


def put_int32(to: Any, at: int, value: int) -> int:
    to[at : at + 4] = (value & MASK32).to_bytes(4, "big")
    return at + 4


def put_int64(to: Any, at: int, value: int) -> int:
    to[at : at + 8] = (value & MASK64).to_bytes(8, "big")
    return at + 8


def get_int16(source: Any, at: int) -> int:
    return int.from_bytes(source[at : at + 2], "big", signed=True)


def get_int32(source: Any, at: int) -> int:
    return int.from_bytes(source[at : at + 4], "big", signed=True)


def get_int64(source: Any, at: int) -> int:
    return int.from_bytes(source[at : at + 8], "big", signed=True)


def crc32c(crc: int, data: Any, at: int, size: int) -> int:
    return _checksum(bytes(data[at : at + size]), crc)


def crc32c_combined(first: int, second: int, size: int) -> int:
    """The checksum of two adjacent pieces, from the checksum of each; ``size`` is that of the second piece."""
    # The first piece adds its own bits to the whole, shifted by the second piece's bytes.
    zeros = bytes(size)
    return crc32c(first, zeros, 0, size) ^ crc32c(0, zeros, 0, size) ^ second


def murmur2(data: Any, size: int) -> int:
    m = 0x5BD1E995
    h = 0x9747B28C ^ (size & MASK32)
    whole = size - size % 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & MASK32
        k = (k ^ (k >> 24)) * m & MASK32
        h = (h * m & MASK32) ^ k
    tail = bytes(data[whole:size])
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * m & MASK32
    h = (h ^ (h >> 13)) * m & MASK32
    return h ^ (h >> 15)


def utf8_size(text: str) -> int:
    return len(text.encode())


def utf8_pointer(text: str) -> Any:
    return text.encode()


class RecordView:
    """One record on its way into a batch; the compiled form is a C struct of addresses and sizes."""

    __slots__ = ("headers", "headers_size", "key", "key_size", "timestamp", "value", "value_size")

    def __init__(
        self, *, timestamp: int, key: Any, key_size: int, value: Any, value_size: int, headers: Any, headers_size: int
    ) -> None:
        self.timestamp = timestamp
        self.key = key
        self.key_size = key_size
        self.value = value
        self.value_size = value_size
        self.headers = headers
        self.headers_size = headers_size


RecordPointer = RecordView


def view_of(record: RecordView) -> RecordPointer:
    return record


def optional_pointer(data: bytes | None) -> Any:
    return b"" if data is None else data


def optional_size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def bytes_of(size: int) -> Any:
    return bytearray(size)


def writable_pointer(fresh: Any) -> Any:
    return memoryview(fresh)


def finished_bytes(fresh: Any) -> bytes:
    return bytes(fresh)


SECTION_ROOM = 512
"""Most bytes of a header section that is written before its size is known."""

MAX_VARINT = 5
"""Bytes of the largest size."""


class SectionRoom(bytearray):
    """Room for a short header section; the compiled form is a C struct on the stack."""

    def __init__(self) -> None:
        super().__init__(SECTION_ROOM)


def section_pointer(room: SectionRoom) -> Any:
    return memoryview(room)


def put_plain_header(to: Any, at: int, until: int, pair: Any) -> int:
    if type(pair) is not tuple or len(pair) != 2:
        return -1
    key, value = pair
    if type(key) is not str or not key.isascii() or (value is not None and type(value) is not bytes):
        return -1
    size = optional_size(value)
    if at + 2 * MAX_VARINT + len(key) + size > until:
        return -1
    at = put_raw(to, put_varint(to, at, zigzag(len(key))), key.encode("ascii"), len(key))
    at = put_varint(to, at, zigzag(size))
    return put_raw(to, at, value, size) if size > 0 else at


def record_view(timestamp: int, key: bytes | None, value: bytes | None, section: bytes) -> RecordView:
    return RecordView(
        timestamp=timestamp,
        key=optional_pointer(key),
        key_size=optional_size(key),
        value=optional_pointer(value),
        value_size=optional_size(value),
        headers=section,
        headers_size=len(section),
    )
