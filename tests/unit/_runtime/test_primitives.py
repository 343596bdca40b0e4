"""The primitives, each test on the interpreted and on the compiled form."""

from __future__ import annotations

import zlib
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.errors import InvalidRecordError
from tests.support.produced import read_varint
from tests.unit._runtime import prim_probe

# The 48-character key of the Java test.
LONG_KEY = b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"

MURMUR = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    LONG_KEY: -58897971,
    b"abc": 479470107,
    b"": 275646681,
    b"key": -1079937367,
}

PARTITIONS = {
    b"21": (0, 0, 3, 0, 0, 40),
    b"foobar": (0, 0, 0, 6, 6, 66),
    b"a-little-bit-long-string": (0, 2, 1, 2, 8, 12),
    b"a-little-bit-longer-string": (1, 2, 0, 9, 11, 19),
    LONG_KEY: (1, 2, 3, 7, 5, 77),
    b"abc": (1, 0, 4, 7, 3, 7),
    b"": (1, 0, 2, 1, 9, 81),
    b"key": (1, 1, 4, 1, 1, 81),
}

SIGNED_32 = {
    0: "00",
    -1: "01",
    1: "02",
    63: "7e",
    -64: "7f",
    64: "8001",
    -65: "8101",
    8191: "fe7f",
    -8192: "ff7f",
    8192: "808001",
    -8193: "818001",
    1048575: "feff7f",
    -1048576: "ffff7f",
    1048576: "80808001",
    -1048577: "81808001",
    134217727: "feffff7f",
    -134217728: "ffffff7f",
    134217728: "8080808001",
    -134217729: "8180808001",
    2147483647: "feffffff0f",
    -2147483648: "ffffffff0f",
}

UNSIGNED_32 = {
    0: "00",
    1: "01",
    63: "3f",
    64: "40",
    8191: "ff3f",
    8192: "8040",
    1048575: "ffff3f",
    1048576: "808040",
    2147483647: "ffffffff07",
    -1 & 0xFFFFFFFF: "ffffffff0f",
    -64 & 0xFFFFFFFF: "c0ffffff0f",
    -8192 & 0xFFFFFFFF: "80c0ffff0f",
    -8193 & 0xFFFFFFFF: "ffbfffff0f",
    -2147483648 & 0xFFFFFFFF: "8080808008",
}

SIGNED_64 = {
    17179869183: "feffffff7f",
    -17179869184: "ffffffff7f",
    17179869184: "80" * 5 + "01",
    2199023255551: "feffffffff7f",
    281474976710655: "fe" + "ff" * 5 + "7f",
    36028797018963967: "fe" + "ff" * 6 + "7f",
    36028797018963968: "80" * 8 + "01",
    4611686018427387903: "fe" + "ff" * 7 + "7f",
    4611686018427387904: "80" * 9 + "01",
    9223372036854775807: "fe" + "ff" * 8 + "01",
    -9223372036854775808: "ff" * 9 + "01",
}


def test_the_probe_is_what_it_says(probe: ModuleType, request: pytest.FixtureRequest) -> None:
    assert ("compiled" in request.node.name) == probe.COMPILED


@pytest.mark.parametrize("key", MURMUR)
def test_murmur2(probe: ModuleType, key: bytes) -> None:
    """A1 testMurmur2, A2: signed 32-bit results."""
    unsigned = probe.murmur(key)
    assert unsigned - (unsigned >> 31 << 32) == MURMUR[key]


@pytest.mark.parametrize("key", PARTITIONS)
def test_partition_of_a_key(probe: ModuleType, key: bytes) -> None:
    """A3: masked, not abs()."""
    assert tuple((probe.murmur(key) & 0x7FFFFFFF) % count for count in (2, 3, 7, 10, 12, 100)) == PARTITIONS[key]


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"Some String", 608512271), (b"123456789", 0xE3069283), (bytes(range(32)), 0x46DD794E), (b"", 0)],
)
def test_crc32c(probe: ModuleType, data: bytes, expected: int) -> None:
    """A4 Crc32CTest.testValue."""
    assert probe.castagnoli(data) == expected


def test_crc32_of_legacy_messages() -> None:
    """A5: the standard library's is the one that formats v0 and v1 use."""
    assert zlib.crc32(b"123456789") == 0xCBF43926


def test_crc32c_in_parts(probe: ModuleType) -> None:
    """L Crc32CTest.testUpdate: bulk, byte by byte and two halves agree."""
    text = b"Any String you want"
    bytewise = 0
    for index in range(len(text)):
        bytewise = probe.castagnoli(text[index : index + 1], bytewise)
    halves = probe.castagnoli(text[7:], probe.castagnoli(text[:7]))
    assert bytewise == halves == probe.castagnoli(text)


@pytest.mark.parametrize(
    "size", [0, 1, 2, 3, 40, 127, 128, 1023, 1024, 16_323, 32_767, 32_768, 65_535, 65_536, 1_000_003]
)
def test_crc32c_of_two_pieces_by_theirs(probe: ModuleType, size: int) -> None:
    first, second = b"what goes before", bytes(index * 37 % 251 for index in range(size))
    whole = probe.castagnoli(first + second)
    assert probe.combined(probe.castagnoli(first), probe.castagnoli(second), size) == whole


@given(st.binary(max_size=300), st.binary(max_size=5000))
def test_crc32c_of_two_pieces_agrees(compiled_probe: ModuleType, first: bytes, second: bytes) -> None:
    sums = prim_probe.castagnoli(first), prim_probe.castagnoli(second)
    whole = prim_probe.castagnoli(first + second)
    assert compiled_probe.combined(*sums, len(second)) == prim_probe.combined(*sums, len(second)) == whole


@pytest.mark.parametrize("size", [0, 1, 8191, 8192, 8193, 50_000])
def test_a_copy_is_checked_as_it_is_made(probe: ModuleType, size: int) -> None:
    data = bytes(at * 7 & 0xFF for at in range(size))
    before = probe.castagnoli(b"before", 0)
    assert probe.copied_and_checked(data, before) == (bytes(3) + data, probe.castagnoli(b"before" + data, 0))


@pytest.mark.parametrize("width", [4, 8, 13])
def test_crc32c_over_integers_and_from_an_offset(probe: ModuleType, width: int) -> None:
    """L ChecksumsTest: incremental update over int, long and offset buffers equals one-shot."""
    data = (0x0123456789ABCDEF << 40).to_bytes(13, "big")[:width]
    assert probe.castagnoli(b"xyz" + data, 0, 3) == probe.castagnoli(data)
    assert probe.castagnoli(data, probe.castagnoli(b"xyz")) == probe.castagnoli(b"xyz" + data)


@pytest.mark.parametrize("value", SIGNED_32)
def test_signed_varint(probe: ModuleType, value: int) -> None:
    """A11 ByteUtilsTest.testVarintSerde."""
    assert probe.signed_varint(value).hex() == SIGNED_32[value]
    assert read_varint(probe.signed_varint(value)) == (value, len(SIGNED_32[value]) // 2)


@pytest.mark.parametrize("value", UNSIGNED_32)
def test_unsigned_varint(probe: ModuleType, value: int) -> None:
    """A11 ByteUtilsTest.testUnsignedVarintSerde: negative ones as 32-bit patterns."""
    assert probe.unsigned_varint(value).hex() == UNSIGNED_32[value]


@pytest.mark.parametrize("value", SIGNED_64)
def test_signed_varlong(probe: ModuleType, value: int) -> None:
    """A12 ByteUtilsTest.testVarlongSerde."""
    assert probe.signed_varint(value).hex() == SIGNED_64[value]
    assert read_varint(probe.signed_varint(value), bits=64) == (value, len(SIGNED_64[value]) // 2)


@pytest.mark.parametrize(
    ("data", "bits"),
    [("ffffffffff01", 32), ("ff" * 10 + "01", 64), ("ffffffff1f", 32), ("ff" * 9 + "02", 64), ("80", 32)],
)
def test_overlong_varint(data: str, bits: int) -> None:
    """A12 testInvalidVarint, testInvalidVarlong: over-long, too large for its width, or cut short."""
    with pytest.raises(InvalidRecordError, match="a number"):
        read_varint(bytes.fromhex(data), bits=bits)


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_agree(compiled_probe: ModuleType, value: int) -> None:
    written = prim_probe.integers(value)
    assert compiled_probe.integers(value) == written
    assert compiled_probe.read_back(written) == prim_probe.read_back(written)
    assert prim_probe.read_back(written)[2] == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_varints_agree(compiled_probe: ModuleType, value: int) -> None:
    written = prim_probe.signed_varint(value)
    assert compiled_probe.signed_varint(value) == written
    assert read_varint(written, bits=64) == (value, len(written))


@given(st.integers(0, 2**64 - 1))
def test_unsigned_varints_agree(compiled_probe: ModuleType, value: int) -> None:
    written = prim_probe.unsigned_varint(value)
    assert compiled_probe.unsigned_varint(value) == written
    assert sum((byte & 0x7F) << 7 * index for index, byte in enumerate(written)) == value


@given(st.binary(max_size=300), st.integers(0, 2**32 - 1))
def test_hashes_and_copies_agree(compiled_probe: ModuleType, data: bytes, crc: int) -> None:
    assert compiled_probe.castagnoli(data, crc) == prim_probe.castagnoli(data, crc)
    assert compiled_probe.murmur(data) == prim_probe.murmur(data)
    assert compiled_probe.copy(data, 3) == prim_probe.copy(data, 3) == b"\0\0\0" + data + b"\0"


@given(st.text())
def test_utf8_agrees(compiled_probe: ModuleType, text: str) -> None:
    assert compiled_probe.utf8(text) == prim_probe.utf8(text) == text.encode()


def test_utf8_of_a_lone_surrogate(probe: ModuleType) -> None:
    with pytest.raises(UnicodeEncodeError):
        probe.utf8("\ud800")


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 255, 383, 384, 385, 1024, 3071, 3072, 3073, 8191, 8192, 16323, 24577])
def test_crc32c_of_long_input_agrees(compiled_probe: ModuleType, size: int) -> None:
    data = bytes(index * 37 % 251 for index in range(size))
    assert compiled_probe.castagnoli(data) == prim_probe.castagnoli(data)
