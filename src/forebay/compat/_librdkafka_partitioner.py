"""librdkafka's partitioners: from a key to a partition."""

from __future__ import annotations

from zlib import crc32

import cython
from cython.cimports.forebay.producer._frontend import MAX_INT32, bytes_pointer, murmur2

PARTITIONERS = {
    name: kind
    for kind, name in enumerate(
        ("random", "consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random")
    )
}
"""librdkafka's names for them, and their kinds."""
RANDOM = cython.declare(cython.int, 0)
CONSISTENT = cython.declare(cython.int, 1)
CONSISTENT_RANDOM = cython.declare(cython.int, 2)
MURMUR2 = cython.declare(cython.int, 3)
MURMUR2_RANDOM = cython.declare(cython.int, 4)
FNV1A = cython.declare(cython.int, 5)
FNV1A_RANDOM = cython.declare(cython.int, 6)


@cython.ccall
@cython.exceptval(-2)
def hash_partition(kind: cython.int, key: bytes | None, count: cython.int) -> cython.int:
    """The partition that the partitioner ``kind`` chooses for ``key``; -1 where it takes a random one."""
    if kind == RANDOM or (key is None and kind in (CONSISTENT_RANDOM, MURMUR2_RANDOM, FNV1A_RANDOM)):
        return -1
    data: bytes = b"" if key is None else key
    if kind in (CONSISTENT, CONSISTENT_RANDOM):
        if kind == CONSISTENT_RANDOM and len(data) == 0:
            return -1
        checksum: cython.longlong = crc32(data)
        return checksum % count
    if kind in (MURMUR2, MURMUR2_RANDOM):
        return (murmur2(bytes_pointer(data), len(data)) & MAX_INT32) % count
    return fnv1a(data) % count


@cython.cfunc
@cython.exceptval(check=False)
def fnv1a(data: bytes) -> cython.longlong:
    # FNV-1a of 32 bits; the absolute value of the signed number, as Sarama has it.
    hashed: cython.longlong = 0x811C9DC5
    at: cython.Py_ssize_t
    for at in range(len(data)):
        octet: cython.longlong = data[at]
        hashed = ((hashed ^ octet) * 0x01000193) & 0xFFFFFFFF
    return hashed if hashed < 0x80000000 else 0x100000000 - hashed
