from __future__ import annotations

import random
import threading
from collections.abc import Sequence

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay._records.codec_framing import LZ4_HEADER, SNAPPY_BLOCK, SNAPPY_HEADER
from forebay._records.compression import JOIN_LIMIT, LEVELS, CompressionType, ZstdCompressor, compressor
from forebay._records.decompression import decompress
from forebay.errors import IllegalArgumentError
from tests.support.examples import examples

GZIP, SNAPPY, LZ4, ZSTD = list(CompressionType)[1:]
ALL_LEVELS = [
    (CompressionType.NONE, None),
    *((GZIP, level) for level in (1, -1, 9)),
    (SNAPPY, None),
    *((LZ4, level) for level in (1, 9, 17)),
    *((ZSTD, level) for level in (-131072, 3, 22)),
]


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)] or [b""]


def lz4_blocks(frame: bytes) -> list[int]:
    """The sizes of a frame's blocks, less the bit that says stored; the end mark must come last."""
    sizes: list[int] = []
    at = len(LZ4_HEADER)
    while True:
        size = int.from_bytes(frame[at : at + 4], "little")
        at += 4 + (size & 0x7FFFFFFF)
        if size == 0:
            assert at == len(frame)
            return sizes
        sizes.append(size & 0x7FFFFFFF)


def snappy_blocks(data: bytes) -> list[int]:
    """The uncompressed sizes of the blocks behind the xerial header."""
    assert data.startswith(SNAPPY_HEADER)
    sizes: list[int] = []
    at = len(SNAPPY_HEADER)
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        sizes.append(cramjam.snappy.decompress_raw_len(data[at + 4 : at + 4 + length]))
        at += 4 + length
    return sizes


def test_ids_and_names() -> None:
    """A13: none 0, gzip 1, snappy 2, lz4 3, zstd 4."""
    assert [(kind.value, kind.label) for kind in CompressionType] == list(
        enumerate(["none", "gzip", "snappy", "lz4", "zstd"])
    )
    assert CompressionType.of("zstd") is ZSTD
    with pytest.raises(IllegalArgumentError, match="unknown compression type 'brotli', allowed: none, gzip"):
        CompressionType.of("brotli")


@pytest.mark.parametrize(("kind", "level"), ALL_LEVELS)
def test_round_trip(kind: CompressionType, level: int | None) -> None:
    """K every codec: 1024 bytes "data"x256 at the lowest, default and highest level, flushed and read back."""
    data = b"data" * 256
    packed = compressor(kind, level).compress([data])
    assert decompress(kind, packed, 1024) == data
    assert kind == CompressionType.NONE or level == -131072 or len(packed) < len(data)


@pytest.mark.parametrize(
    ("kind", "level"), [(GZIP, 0), (GZIP, 10), (GZIP, -2), (LZ4, 0), (LZ4, 18), (ZSTD, -131073), (ZSTD, 23)]
)
def test_levels_out_of_range(kind: CompressionType, level: int) -> None:
    """K level below min / above max: gzip takes -1 but not 0."""
    with pytest.raises(
        IllegalArgumentError, match=f"{kind.label} doesn't support compression level {level}, allowed: "
    ):
        compressor(kind, level)


def test_default_levels() -> None:
    assert [compressor(kind).level for kind in LEVELS] == [-1, 9, 3]


def test_lz4_default_is_the_fast_compressor() -> None:
    text = b" ".join(str(number * 7919 % 1000).encode() for number in range(4000))
    sizes = {level: len(compressor(LZ4, level).compress([text])) for level in (1, 9, 17)}
    assert sizes[17] <= sizes[1] < sizes[9]


@pytest.mark.parametrize("size", [0, 1, 1000, 65536, 98304])
@pytest.mark.parametrize("level", [1, 9, 17])
@pytest.mark.parametrize("make", [noise, lambda size: b"\1" * size], ids=["random", "ones"])
def test_lz4_framing(size: int, level: int, make: object) -> None:
    """A14 and K Lz4CompressionTest: header 04 22 4D 18 60 40 82, blocks of at most 64 KiB, end mark 00000000."""
    data: bytes = make(size)  # type: ignore[operator]
    packer = compressor(LZ4, level)
    for frame in (packer.compress([data]), *packer.compress_many([[data], [data]])):
        assert frame[:7] == bytes.fromhex("04224d18604082")
        assert frame[-4:] == b"\0\0\0\0"
        assert len(lz4_blocks(frame)) == -(-size // 65536)
        assert all(block <= 65536 for block in lz4_blocks(frame))
        assert decompress(LZ4, frame, size) == data


def test_lz4_stores_what_does_not_shrink() -> None:
    frame = compressor(LZ4).compress([noise(100)])
    assert frame == LZ4_HEADER + (100 | 1 << 31).to_bytes(4, "little") + noise(100) + b"\0\0\0\0"


@pytest.mark.parametrize("size", [1, 60, 61, 256, 257, 32768, 32769, 100_000])
@pytest.mark.parametrize("make", [noise, lambda size: b"\1" * size], ids=["random", "ones"])
def test_snappy_framing(size: int, make: object) -> None:
    """A14: the xerial header, then raw blocks of at most 32 KiB input each."""
    data: bytes = make(size)  # type: ignore[operator]
    packer = compressor(SNAPPY)
    for packed in (packer.compress([data]), *packer.compress_many([[data], [data]])):
        assert packed[:16].hex() == "82534e4150505900" + "00000001" * 2
        assert snappy_blocks(packed) == [len(piece) for piece in cut(data, SNAPPY_BLOCK)]
        assert decompress(SNAPPY, packed, size) == data


def test_gzip_is_one_plain_stream() -> None:
    packer = compressor(GZIP)
    for packed in (packer.compress([b"abc" * 100]), *packer.compress_many([[b"abc" * 100]] * 2)):
        assert packed[:3] == b"\x1f\x8b\x08"


def test_zstd_is_one_frame_without_content_size() -> None:
    packer = compressor(ZSTD)
    big = b"ab" * JOIN_LIMIT
    for packed in (
        packer.compress([b"abc" * 100]),
        *packer.compress_many([[b"abc" * 100]] * 2),
        packer.compress(cut(big, 9999)),
    ):
        assert packed[:4] == bytes.fromhex("28b52ffd")
        assert packed[4] & 0xE0 == 0  # neither content size nor single segment


HIGHEST = pytest.param(19, 23, marks=pytest.mark.rest("as the others, for much longer"))


@pytest.mark.parametrize(("level", "window"), [(-5, 19), (2, 19), (3, 19), (4, 21), HIGHEST])
def test_zstd_s_window_is_no_larger_than_its_level_remembers(level: int, window: int) -> None:
    data = noise(9 << 20)
    for packed in (compressor(ZSTD, level).compress(cut(data, 1 << 20)), compressor(ZSTD, level).compress([data])):
        assert 10 + (packed[5] >> 3) == window
        assert decompress(ZSTD, packed, len(data)) == data


def test_zstd_s_window_is_no_larger_than_its_input() -> None:
    packed = compressor(ZSTD).compress([noise(20_000)])
    assert 10 + (packed[5] >> 3) == 15


def test_what_is_copied_to_be_compressed_is_said() -> None:
    large = JOIN_LIMIT + 1
    assert [compressor(kind).copied(large, 2) for kind in CompressionType] == [0, 0, 0, 0, large]
    assert [compressor(ZSTD).copied(size, chunks) for size, chunks in ((large, 1), (JOIN_LIMIT, 2))] == [0, 0]


@pytest.mark.parametrize(("kind", "level"), ALL_LEVELS)
@pytest.mark.parametrize("size", [0, 1, 40_000, JOIN_LIMIT, JOIN_LIMIT + 1, 1_200_000])
def test_chunks_and_turns_give_the_same_records(kind: CompressionType, level: int | None, size: int) -> None:
    packer = compressor(kind, level)
    for data in (noise(size), (b"0123456789" * size)[:size]):
        chunks = cut(data, 16384)
        outcomes = [packer.compress([data]), packer.compress(chunks), *packer.compress_many([chunks, [data]])]
        for packed in outcomes:
            assert type(packed) is bytes
            assert decompress(kind, packed, size) == data
            assert len(packed) <= packer.bound(size, len(chunks))


@pytest.mark.parametrize("kind", list(CompressionType))
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("size", [1000, JOIN_LIMIT, JOIN_LIMIT + 10])
def test_pieces_are_several_where_one_would_be_a_copy(kind: CompressionType, count: int, size: int) -> None:
    data = noise(size // 2) + bytes(size - size // 2)
    chunks = cut(data, -(-size // count))
    pieces = compressor(kind).compress_to_pieces(chunks)
    large = size > JOIN_LIMIT
    assert (len(pieces) > 1) == (large and (kind == ZSTD or (kind in (GZIP, LZ4) and count > 1)))
    assert all(type(piece) is bytes for piece in pieces)
    assert b"".join(pieces) == compressor(kind).compress(chunks)
    assert decompress(kind, b"".join(pieces), size) == data


@pytest.mark.parametrize("kind", list(CompressionType))
def test_turns_of_none_and_one(kind: CompressionType) -> None:
    packer = compressor(kind)
    assert packer.compress_many([]) == []
    assert [decompress(kind, each, 10) for each in packer.compress_many([[b"abc"]])] == [b"abc"]
    assert [decompress(kind, each, 10) for each in packer.compress_many([[b""], [b"", b""]])] == [b"", b""]


@pytest.mark.parametrize("kind", list(CompressionType))
@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer(kind: CompressionType, form: type) -> None:
    packer = compressor(kind)
    chunks: Sequence[bytes] = [form(b"hello " * 20), form(b"world" * 10)]
    for packed in (packer.compress(chunks), *packer.compress_many([chunks, chunks])):
        assert decompress(kind, packed, 170) == b"hello " * 20 + b"world" * 10


@settings(max_examples=examples(60))
@given(
    st.sampled_from(list(CompressionType)),
    st.lists(st.lists(st.binary(max_size=300), min_size=1, max_size=4), min_size=1, max_size=5),
)
def test_many_equals_one_by_one(kind: CompressionType, batches: list[list[bytes]]) -> None:
    packer = compressor(kind)
    many = packer.compress_many(batches)
    assert [decompress(kind, packed, 2000) for packed in many] == [b"".join(chunks) for chunks in batches]


@pytest.mark.parametrize("kind", list(CompressionType))
def test_threads_do_not_share_a_context(kind: CompressionType) -> None:
    packer = compressor(kind)
    inputs = [noise(1000 + index) * 30 for index in range(8)]
    results: list[list[bytes]] = [[] for _ in inputs]

    def work(index: int) -> None:
        for _ in range(10):
            results[index].append(packer.compress([inputs[index]]))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for data, packed in zip(inputs, results, strict=True):
        assert [decompress(kind, each, len(data)) for each in packed] == [data] * 10


def test_a_caller_has_its_own_context_again_and_others_share_what_is_idle() -> None:
    callers = ["a", "b", "a", "c"]
    packer = compressor(CompressionType.ZSTD, caller=iter(callers).__next__)
    assert isinstance(packer, ZstdCompressor)
    with packer._context(None) as first, packer._context(None) as second:
        assert first is not second
    with packer._context(None) as again:
        assert again is first
        with packer._context(None) as other:
            assert other is second
