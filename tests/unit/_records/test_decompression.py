from __future__ import annotations

import gzip
import tracemalloc

import lz4.frame  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay._records.codec_framing import SNAPPY_HEADER
from forebay._records.compression import CompressionType, compressor
from forebay._records.decompression import (
    STEP,
    break_lz4_checksum,
    decompress,
    mend_lz4_checksum,
    xxh32_short,
)
from forebay.errors import CorruptRecordError
from tests.support.examples import examples

GZIP, SNAPPY, LZ4, ZSTD = CODECS = list(CompressionType)[1:]
BOMB = 40 * 1024 * 1024


@pytest.mark.parametrize("kind", list(CompressionType))
def test_the_limit_is_exact(kind: CompressionType) -> None:
    packed = compressor(kind).compress([b"ab" * 5000])
    assert decompress(kind, packed, 10_000) == b"ab" * 5000
    with pytest.raises(
        CorruptRecordError, match=f"{kind.label} data decompresses to more than the limit of 9999 bytes"
    ):
        decompress(kind, packed, 9999)


@pytest.mark.parametrize("kind", CODECS)
def test_a_bomb_costs_no_more_than_the_limit(kind: CompressionType) -> None:
    bomb = compressor(kind).compress([bytes(BOMB)])
    tracemalloc.start()
    with pytest.raises(CorruptRecordError, match="more than the limit"):
        decompress(kind, bomb, 1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000 + 4 * STEP


def test_a_promise_costs_nothing() -> None:
    block = b"\xff\xff\xff\xff\x07" + b"\0" * 10
    with pytest.raises(CorruptRecordError, match="promises 2147483647 bytes"):
        decompress(SNAPPY, SNAPPY_HEADER + len(block).to_bytes(4, "big") + block, 2**31)


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize("size", [1, 1000, 100_000])
def test_cut_short_or_followed_by_more(kind: CompressionType, size: int) -> None:
    """K unclosed stream: premature end; trailing garbage is refused as well."""
    packed = compressor(kind).compress([bytes(index % 251 for index in range(size))])
    for end in {0, 1, 3, 4, 5, 6, 7, 10, len(packed) // 2, len(packed) - 4, len(packed) - 1}:
        if (kind, end) != (SNAPPY, len(SNAPPY_HEADER)) and end < len(packed):
            with pytest.raises(CorruptRecordError, match=f"of {kind.label} data cannot be decompressed"):
                decompress(kind, packed[:end], 10 * size)
    with pytest.raises(CorruptRecordError):
        decompress(kind, packed + b"\0", 10 * size)


@settings(max_examples=examples(300))
@given(st.sampled_from(CODECS), st.data())
def test_damage_is_one_error_or_none(kind: CompressionType, data: st.DataObject) -> None:
    packed = bytearray(compressor(kind).compress([b"some words, some words and some more words" * 3]))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] = data.draw(st.integers(0, 255))
    try:
        assert len(decompress(kind, packed, 5000)) <= 5000
    except CorruptRecordError as error:
        assert kind.label in str(error)


@settings(max_examples=examples(300))
@given(st.sampled_from(CODECS), st.binary(max_size=60))
def test_any_bytes_are_one_error_or_fine(kind: CompressionType, tail: bytes) -> None:
    for data in (tail, compressor(kind).compress([b"x"])[:7] + tail):
        try:
            assert len(decompress(kind, data, 1000)) <= 1000
        except CorruptRecordError as error:
            assert kind.label in str(error)


def test_gzip_members_are_joined() -> None:
    packed = gzip.compress(b"one, ") + gzip.compress(b"two")
    assert decompress(GZIP, packed, 8) == b"one, two"
    with pytest.raises(CorruptRecordError):
        decompress(GZIP, packed, 7)
    with pytest.raises(CorruptRecordError):
        decompress(GZIP, packed[:-3], 100)


def test_gzip_of_many_steps() -> None:
    data = bytes(index * index % 253 for index in range(3 * STEP))
    assert decompress(GZIP, gzip.compress(data, 0), len(data)) == data


def test_snappy_without_the_header_is_one_block() -> None:
    block = compressor(SNAPPY).compress([b"plain " * 50])[len(SNAPPY_HEADER) + 4 :]
    assert decompress(SNAPPY, block, 300) == b"plain " * 50


@pytest.mark.parametrize("block_checksum", [False, True])
@pytest.mark.parametrize("content_checksum", [False, True])
@pytest.mark.parametrize("size", [0, 1, 1000, 65536, 98304, 3_000_000])
def test_lz4_frames_of_others(size: int, block_checksum: bool, content_checksum: bool) -> None:
    """K Lz4: with block checksum, content size, larger blocks; a damaged block checksum is found."""
    data = bytes(index * 31 % 256 for index in range(size))
    frame = lz4.frame.compress(
        data, block_checksum=block_checksum, content_checksum=content_checksum, block_size=lz4.frame.BLOCKSIZE_MAX4MB
    )
    assert decompress(LZ4, frame, size) == data
    if block_checksum and size:
        with pytest.raises(CorruptRecordError, match="hecksum"):
            decompress(LZ4, frame[:20] + bytes([frame[20] ^ 1]) + frame[21:], size)


def test_lz4_wrong_header() -> None:
    """K Lz4: bad magic "not supported", wrong header checksum refused, block over the maximum refused."""
    frame = compressor(LZ4).compress([b"abc" * 100])
    with pytest.raises(CorruptRecordError, match="magic number 05224d18 is not supported"):
        decompress(LZ4, b"\5" + frame[1:], 300)
    with pytest.raises(CorruptRecordError, match="headerChecksum"):
        decompress(LZ4, frame[:6] + b"\x83" + frame[7:], 300)
    with pytest.raises(CorruptRecordError, match="maxBlockSize"):
        decompress(LZ4, frame[:7] + (65537).to_bytes(4, "little") + frame[11:], 300)


def test_lz4_checksum_of_format_v0() -> None:
    """K testLz4FramingMagicV0: over the magic number too; wrong for anyone else, mended for ourselves."""
    frame = compressor(LZ4).compress([b"abc" * 100])
    broken = break_lz4_checksum(frame)
    assert frame[6] == xxh32_short(frame[4:6]) >> 8 & 0xFF == 0x82
    assert broken[6] == xxh32_short(frame[:6]) >> 8 & 0xFF != 0x82
    assert broken[:6] + broken[7:] == frame[:6] + frame[7:]
    assert mend_lz4_checksum(broken) == mend_lz4_checksum(frame) == frame
    with pytest.raises(CorruptRecordError):
        decompress(LZ4, broken, 300)


def test_lz4_checksum_behind_a_content_size() -> None:
    frame = lz4.frame.compress(b"abc" * 100, store_size=True)
    assert frame[14] == xxh32_short(frame[4:14]) >> 8 & 0xFF
    wrong = frame[:14] + bytes([frame[14] ^ 0xFF]) + frame[15:]
    assert mend_lz4_checksum(wrong) == frame
    assert decompress(LZ4, mend_lz4_checksum(wrong), 300) == b"abc" * 100


@pytest.mark.parametrize("frame", [b"", b"\x04\x22\x4d\x18", b"no lz4 at all", b"\x04\x22\x4d\x18\xa0\x40\x82\0\0\0\0"])
def test_lz4_checksum_of_what_is_no_frame(frame: bytes) -> None:
    with pytest.raises(CorruptRecordError, match="lz4"):
        mend_lz4_checksum(frame)


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("content_size", [False, True])
def test_zstd_frames_of_others(content_size: bool, checksum: bool) -> None:
    data = bytes(200_000) + bytes(range(256)) * 400
    frame = zstandard.ZstdCompressor(write_content_size=content_size, write_checksum=checksum).compress(data)
    assert decompress(ZSTD, frame, len(data)) == data
    with pytest.raises(CorruptRecordError):
        decompress(ZSTD, frame[:-1], len(data))
    with pytest.raises(CorruptRecordError, match="other bytes follow the frame"):
        decompress(ZSTD, frame + frame, 2 * len(data))
    if checksum:
        with pytest.raises(CorruptRecordError):
            decompress(ZSTD, frame[:-1] + bytes([frame[-1] ^ 1]), len(data))
