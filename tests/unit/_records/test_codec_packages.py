"""Codecs where not every package is installed: another one makes and reads the same frames, or its absence is told."""

from __future__ import annotations

import importlib.util
import random
import sys
import threading
import tracemalloc
from collections.abc import Callable

import pytest

from forebay._records.codec_framing import LZ4_HEADER
from forebay._records.codec_packages import ZSTD_PACKAGES, StandardZstd, load_package, optional_package
from forebay._records.compression import JOIN_LIMIT, CompressionType, compressor
from forebay._records.decompression import STEP, decompress
from forebay.errors import ConfigError, CorruptRecordError

GZIP, SNAPPY, LZ4, ZSTD = list(CompressionType)[1:]
TEXT = b"some words, some words and some more words, " * 500
Hide = Callable[[str], None]

# Which package is not there, and a codec that goes on without it.
LEFT = [
    ("cramjam", GZIP, None),
    ("cramjam", LZ4, 9),
    ("cramjam", LZ4, 17),
    ("lz4", LZ4, 9),
    ("lz4", LZ4, 17),
    ("zstandard", ZSTD, -5),
    ("zstandard", ZSTD, 3),
    ("zstandard", ZSTD, 9),
]


def has_another_zstd() -> bool:
    return any(importlib.util.find_spec(name.partition(".")[0]) for name in ZSTD_PACKAGES[1:])


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Hide:
    """A function that makes a package one that is not installed, until the test ends."""

    def put_away(package: str) -> None:
        for name in {package, *(name for name in sys.modules if name.startswith(f"{package}."))}:
            monkeypatch.setitem(sys.modules, name, None)

    return put_away


@pytest.fixture(params=LEFT, ids=[f"{kind.label} {level} without {package}" for package, kind, level in LEFT])
def codec(request: pytest.FixtureRequest) -> tuple[str, CompressionType, int | None]:
    package, kind, level = request.param
    if package == "zstandard" and not has_another_zstd():
        pytest.skip("neither compression.zstd nor backports.zstd is installed")
    return package, kind, level


@pytest.mark.parametrize("size", [0, 1, len(TEXT), 3 * JOIN_LIMIT])
def test_either_package_reads_what_the_other_makes(
    codec: tuple[str, CompressionType, int | None], hide: Hide, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    package, kind, level = codec
    data = (TEXT * (size // len(TEXT) + 1))[:size]
    pieces = [data[: size // 3], data[size // 3 :]]
    before = compressor(kind, level)
    frames = [before.compress([data]), b"".join(before.compress_to_pieces(pieces))]
    hide(package)
    after = compressor(kind, level)
    made = [after.compress([data]), b"".join(after.compress_to_pieces(pieces)), *after.compress_many([pieces, pieces])]
    assert [decompress(kind, frame, size) for frame in (*frames, *made)] == [data] * 6
    assert all(len(frame) <= after.bound(size, 2) for frame in made)
    assert abs(len(made[0]) - len(frames[0])) <= 16 + len(frames[0]) / 50, "as small"
    monkeypatch.undo()
    assert [decompress(kind, frame, size) for frame in made] == [data] * 4


def test_the_limit_and_every_damage_are_told(codec: tuple[str, CompressionType, int | None], hide: Hide) -> None:
    package, kind, level = codec
    hide(package)
    frame = compressor(kind, level).compress([TEXT])
    assert decompress(kind, frame, len(TEXT)) == TEXT
    with pytest.raises(CorruptRecordError, match="more than the limit"):
        decompress(kind, frame, len(TEXT) - 1)
    for end in (0, 3, 7, len(frame) // 2, len(frame) - 1):
        with pytest.raises(CorruptRecordError, match=f"of {kind.label} data cannot be decompressed"):
            decompress(kind, frame[:end], len(TEXT))
    with pytest.raises(CorruptRecordError):
        decompress(kind, frame + b"\0", len(TEXT))
    for at in range(0, len(frame), 11):
        try:
            assert len(decompress(kind, frame[:at] + bytes([frame[at] ^ 0x55]) + frame[at + 1 :], 30_000)) <= 30_000
        except CorruptRecordError as error:
            assert kind.label in str(error)


def test_a_bomb_costs_no_more_than_the_limit(codec: tuple[str, CompressionType, int | None], hide: Hide) -> None:
    package, kind, level = codec
    hide(package)
    bomb = compressor(kind, level).compress([bytes(40 * 1024 * 1024)])
    tracemalloc.start()
    with pytest.raises(CorruptRecordError, match="more than the limit"):
        decompress(kind, bomb, 1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000 + 4 * STEP


def test_threads_and_any_buffers(codec: tuple[str, CompressionType, int | None], hide: Hide) -> None:
    package, kind, level = codec
    hide(package)
    packer = compressor(kind, level)
    made: list[bytes] = []

    def work() -> None:
        for form in (bytes, bytearray, memoryview):
            made.extend(packer.compress_many([[form(TEXT), form(b"more")]] * 3))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [decompress(kind, frame, 30_000) for frame in made] == [TEXT + b"more"] * 36


def test_lz4_frames_are_kafka_s_without_the_package_lz4(hide: Hide) -> None:
    hide("lz4")
    for level in (1, 9, 17):
        packer = compressor(LZ4, level)
        frame = packer.compress([bytes(200_000)])
        assert frame.startswith(LZ4_HEADER) and frame.endswith(b"\0\0\0\0")
        assert packer.copied(JOIN_LIMIT + 1, 2) == JOIN_LIMIT + 1, "it is joined first"


@pytest.mark.parametrize("size", [1000, 64 * 1024, 64 * 1024 + 1, 300_000, 1_000_000])
def test_lz4_s_default_level_makes_the_same_frame_by_either_package(hide: Hide, size: int) -> None:
    data = random.Random(size).randbytes(size // 3) + (TEXT * 50)[: size - size // 3]
    frame = compressor(LZ4).compress([data])
    hide("lz4")
    assert compressor(LZ4).compress([data]) == frame
    assert compressor(LZ4).compress([data[:10], memoryview(data)[10:]]) == frame


@pytest.mark.skipif(not has_another_zstd(), reason="neither compression.zstd nor backports.zstd is installed")
def test_zstd_frames_have_no_content_size_and_the_level_s_window(hide: Hide) -> None:
    hide("zstandard")
    packer = compressor(ZSTD, 3)
    assert isinstance(packer._new_context(None), StandardZstd)  # type: ignore[attr-defined]
    frame = packer.compress([bytes(range(256)) * 8192])
    assert frame[4] >> 6 == 0, "no content size"
    assert 10 + (frame[5] >> 3) == 19, "a window of 512 KiB"


@pytest.mark.parametrize(
    ("packages", "kind", "words"),
    [
        (["cramjam"], SNAPPY, "compression.type=snappy needs the Python package cramjam.*: pip install cramjam$"),
        (["lz4", "cramjam"], LZ4, "compression.type=lz4 needs the Python package lz4.*: pip install lz4$"),
        (
            ["zstandard", "compression", "backports"],
            ZSTD,
            "compression.type=zstd needs the Python package zstandard.*: pip install zstandard or backports.zstd$",
        ),
    ],
)
def test_a_codec_that_is_left_without_a_package_names_it(
    hide: Hide, packages: list[str], kind: CompressionType, words: str
) -> None:
    for package in packages:
        hide(package)
    with pytest.raises(ConfigError, match=words):
        compressor(kind)
    with pytest.raises(ConfigError, match=f"compression.type={kind.label} needs"):
        decompress(kind, bytes.fromhex("28b52ffd") + bytes(20), 10)


def test_the_first_package_that_is_there_is_taken() -> None:
    assert load_package("gzip", "no_such_codec.frame", "zlib", "bz2").__name__ == "zlib"
    assert optional_package("zlib") is load_package("gzip", "zlib")
    assert optional_package("no_such_codec.frame") is None
    with pytest.raises(ConfigError, match="type=zstd needs the Python package no_such_codec, which is not installed"):
        load_package("zstd", "no_such_codec.frame")
