"""Byte strings and checksums that encoders other than ours made, and strategies and an encoder shared by tests."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

V2_ONE = bytes.fromhex(
    "000000000000000000000040ffffffff021c07770100000000000000000000000000000000000000000000"
    "ffffffffffffffffffffffffffff000000011c000000066b65790a76616c756500"
)
V2_TRANSACTIONAL = bytes.fromhex(
    "000000000000000000000050ffffffff022bf6009b00100000000200000000000003e800000000000003ed"
    "000000000000334b000100000007000000031000000002610231001c000a020102320402680276026e010c000104000100"
)
V2_NONE = bytes.fromhex(
    "000000000000000000000055ffffffff02e58cf1ff00000000000100000000000454c300000000000454c3"
    "ffffffffffffffffffffffffffff0000000220000000086b6579310c76616c756531002400e1bf2202086b6579320c76616c75653200"
)
V2_LZ4 = bytes.fromhex(
    "000000000000000000000064ffffffff02a3ac2aa200030000000100000000000454c300000000000454c3"
    "ffffffffffffffffffffffffffff0000000204224d186040822400008020000000086b6579310c76616c75653100"
    "2400e1bf2202086b6579320c76616c7565320000000000"
)
V0_MESSAGE = bytes.fromhex("75f0f41d0000000000046b6579310000000676616c756531")
V1_MESSAGE = bytes.fromhex("0685b364010000000000000454c3000000046b6579310000000676616c756531")

V2_GOLDENS = {"one": V2_ONE, "transactional": V2_TRANSACTIONAL, "none": V2_NONE, "lz4": V2_LZ4}

CHECKSUMS = {
    (0, "none"): 1978725405,
    (0, "lz4"): 66944826,
    (1, "none"): 109425508,
    (1, "lz4"): 1407303399,
    (2, "none"): 3851219455,
    (2, "lz4"): 2745969314,
}
"""By magic and codec, of the records (283843, key1, value1) and (1234, key2, value2)."""

fields = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), fields), max_size=4).map(tuple)
timestamps = st.integers(-1, 2**63 - 1) | st.integers(1_700_000_000_000 - 5000, 1_700_000_000_000 + 5000)


def varint(value: int) -> bytes:
    """A signed number as the record format has it."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def section_of(given: Sequence[tuple[str, bytes | None]]) -> bytes:
    """A header section, put together from its pieces."""
    section = varint(len(given))
    for key, value in given:
        section += varint(len(key.encode())) + key.encode()
        section += varint(-1) if value is None else varint(len(value)) + value
    return section
