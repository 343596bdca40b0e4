"""Decompression with a limit, for reading batches back: ``decompress(kind, data, limit)``.

Any bytes give at most ``limit`` bytes, or CorruptRecordError.  Memory grows with the bytes that came out so far, never
with a number in a header.  Bytes behind the end of the stream are an error too.  Only gzip may have several members, as
in Java.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from forebay._records.codec_framing import SNAPPY_HEADER
from forebay._records.codec_packages import ZSTD_PACKAGES, Chunk, is_zstandard, load_package
from forebay._records.compression import CompressionType
from forebay.errors import CorruptRecordError

STEP = 256 * 1024
"""A codec is asked for at most so many bytes at a time, so a bomb is noticed one step behind the limit."""

SNAPPY_MAX_EXPANSION = 22
"""A three-byte copy yields 64 bytes: a block that promises more is refused before memory is allocated for it."""

LZ4_MAX_EXPANSION = 255
"""A byte of lz4 stands for 255 at most."""

LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_VERSION_BITS = 0xC0
LZ4_CONTENT_SIZE_BIT = 0x08
LZ4_DICTIONARY_BIT = 0x01

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def decompress(kind: CompressionType, data: Chunk, limit: int) -> bytes:
    """The bytes that were compressed.

    Args:
        limit: most bytes that may come out.

    Raises:
        forebay.errors.CorruptRecordError: malformed, cut short, followed by other bytes, or over the limit.
        forebay.errors.ConfigError: the codec's package is not installed.
    """
    return _DECODERS[kind](memoryview(data), limit)


def _too_much(kind: CompressionType, limit: int) -> CorruptRecordError:
    return CorruptRecordError(f"{kind.label} data decompresses to more than the limit of {limit} bytes")


def _malformed(kind: CompressionType, size: int, why: object) -> CorruptRecordError:
    return CorruptRecordError(f"{size} bytes of {kind.label} data cannot be decompressed: {why}")


def _none(data: memoryview, limit: int) -> bytes:
    if len(data) > limit:
        raise _too_much(CompressionType.NONE, limit)
    return bytes(data)


def _gzip(data: memoryview, limit: int) -> bytes:
    kind = CompressionType.GZIP
    out = bytearray()
    stream = zlib.decompressobj(31)
    at = 0
    rest: Chunk = b""
    # The input goes in by steps too, because the rest of it comes back as a copy each time.
    while rest or at < len(data) or not stream.eof:
        if not rest:
            rest = data[at : at + STEP]
            at += STEP
        if stream.eof:
            stream = zlib.decompressobj(31)
        try:
            piece = stream.decompress(rest, min(STEP, limit + 1 - len(out)))
        except zlib.error as error:
            raise _malformed(kind, len(data), error) from error
        rest = stream.unused_data if stream.eof else stream.unconsumed_tail
        out += piece
        if len(out) > limit:
            raise _too_much(kind, limit)
        if not piece and not rest and at >= len(data) and not stream.eof:
            raise _malformed(kind, len(data), "it ends before the stream does")
    return bytes(out)


def _snappy(data: memoryview, limit: int) -> bytes:
    """Xerial framing.  Bytes without its header are one raw block, as in Java."""
    kind = CompressionType.SNAPPY
    snappy = load_package(kind.label, "cramjam").snappy
    if bytes(data[:8]) != SNAPPY_HEADER[:8]:
        return _snappy_block(snappy, data, limit)
    if len(data) < len(SNAPPY_HEADER):
        raise _malformed(kind, len(data), "the header is cut short")
    out = bytearray()
    at = len(SNAPPY_HEADER)
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        if at + 4 > len(data) or end > len(data):
            raise _malformed(kind, len(data), f"the block at {at} is cut short")
        out += _snappy_block(snappy, data[at + 4 : end], limit - len(out))
        at = end
    return bytes(out)


def _snappy_block(snappy: Any, block: memoryview, limit: int) -> bytes:
    kind = CompressionType.SNAPPY
    if not block:
        raise _malformed(kind, 0, "a block is empty")
    try:
        promised = snappy.decompress_raw_len(block)
        if promised > len(block) * SNAPPY_MAX_EXPANSION:
            raise _malformed(kind, len(block), f"a block promises {promised} bytes")
        if promised > limit:
            raise _too_much(kind, limit)
        return bytes(snappy.decompress_raw(block))
    except CorruptRecordError:
        raise
    except Exception as error:  # the package's own error is no stable public class
        raise _malformed(kind, len(block), error) from error


def _lz4(data: memoryview, limit: int) -> bytes:
    kind = CompressionType.LZ4
    package = load_package(kind.label, "lz4.frame", "cramjam")
    if bytes(data[:4]) != LZ4_MAGIC:
        raise _malformed(kind, len(data), f"the frame's magic number {bytes(data[:4]).hex()} is not supported")
    if hasattr(package, "LZ4FrameDecompressor"):
        return _streamed(kind, package.LZ4FrameDecompressor(), data, limit)
    return _lz4_into(package.lz4, data, limit)


def _streamed(kind: CompressionType, stream: Any, data: memoryview, limit: int) -> bytes:
    """One frame, by an object with the interface of the standard library's decompressors."""
    out = bytearray()
    # The packages give back all input that they did not use, so the input goes in by steps too.  Else a bomb would
    # copy its rest at every step.
    at = 0
    while not stream.eof:
        piece = b""
        try:
            if stream.needs_input:
                piece = stream.decompress(data[at : at + STEP], max_length=min(STEP, limit + 1 - len(out)))
                at += STEP
            else:
                piece = stream.decompress(b"", max_length=min(STEP, limit + 1 - len(out)))
        except Exception as error:  # each package has errors of its own
            raise _malformed(kind, len(data), error) from error
        out += piece
        if len(out) > limit:
            raise _too_much(kind, limit)
        if not piece and stream.needs_input and at >= len(data) and not stream.eof:
            raise _malformed(kind, len(data), "it ends before the frame does")
    if stream.unused_data or at < len(data):
        raise _malformed(kind, len(data), "other bytes follow the frame")
    return bytes(out)


def _lz4_into(lz4: Any, data: memoryview, limit: int) -> bytes:
    """By cramjam, whose only limit is the end of the buffer.  The system gives memory only for what is written."""
    kind = CompressionType.LZ4
    out = bytearray(min(limit + 1, len(data) * LZ4_MAX_EXPANSION))
    try:
        size = lz4.decompress_into(data, out)
    except Exception as error:  # the package's own error is no stable public class
        if "whole buffer" in str(error):
            raise _too_much(kind, limit) from error
        raise _malformed(kind, len(data), error) from error
    if size > limit:
        raise _too_much(kind, limit)
    return bytes(memoryview(out)[:size])


def _zstd(data: memoryview, limit: int) -> bytes:
    """One frame.  Its end is found first, because zstandard's bounded reader does not report one that is cut short."""
    kind = CompressionType.ZSTD
    package = load_package(kind.label, *ZSTD_PACKAGES)
    if _zstd_frame_end(data) != len(data):
        raise _malformed(kind, len(data), "other bytes follow the frame")
    if not is_zstandard(package):
        return _streamed(kind, package.ZstdDecompressor(), data, limit)
    out = bytearray()
    try:
        reader = package.ZstdDecompressor().stream_reader(data, read_size=STEP, read_across_frames=False)
        while len(out) <= limit:
            piece = reader.read(min(STEP, limit + 1 - len(out)))
            if not piece:
                break
            out += piece
    except package.ZstdError as error:
        raise _malformed(kind, len(data), error) from error
    if len(out) > limit:
        raise _too_much(kind, limit)
    return bytes(out)


def _zstd_frame_end(data: memoryview) -> int:
    """Where the frame at the start of ``data`` ends, from its block headers (RFC 8878, section 3.1.1)."""
    kind = CompressionType.ZSTD
    if bytes(data[:4]) != ZSTD_MAGIC or len(data) < 6:
        raise _malformed(kind, len(data), "it has no zstd frame header")
    descriptor = data[4]
    single_segment = descriptor >> 5 & 1
    content_size = (single_segment, 2, 4, 8)[descriptor >> 6]
    at = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3] + content_size
    last = False
    while not last:
        header = int.from_bytes(data[at : at + 3], "little")
        if at + 3 > len(data):
            raise _malformed(kind, len(data), "it ends before the frame does")
        last = bool(header & 1)
        # An RLE block is one byte, however much it stands for; the decoder refuses type 3.
        at += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
    at += 4 * (descriptor >> 2 & 1)
    if at > len(data):
        raise _malformed(kind, len(data), "it ends before the frame does")
    return at


_DECODERS: dict[CompressionType, Callable[[memoryview, int], bytes]] = {
    CompressionType.NONE: _none,
    CompressionType.GZIP: _gzip,
    CompressionType.SNAPPY: _snappy,
    CompressionType.LZ4: _lz4,
    CompressionType.ZSTD: _zstd,
}


def mend_lz4_checksum(frame: Chunk) -> bytes:
    """``frame`` with the right header checksum, whatever it had; format v0 has a wrong one on purpose."""
    data = bytes(frame)
    end = _lz4_descriptor_end(data)
    return data[:end] + bytes([xxh32_short(data[4:end]) >> 8 & 0xFF]) + data[end + 1 :]


def break_lz4_checksum(frame: Chunk) -> bytes:
    """``frame`` with format v0's header checksum, which covers the magic number too, as its readers expect."""
    data = bytes(frame)
    end = _lz4_descriptor_end(data)
    return data[:end] + bytes([xxh32_short(data[:end]) >> 8 & 0xFF]) + data[end + 1 :]


def _lz4_descriptor_end(data: bytes) -> int:
    if len(data) < 7 or data[:4] != LZ4_MAGIC:
        raise _malformed(CompressionType.LZ4, len(data), "it has no lz4 frame header")
    end = 6 + 8 * bool(data[4] & LZ4_CONTENT_SIZE_BIT) + 4 * bool(data[4] & LZ4_DICTIONARY_BIT)
    if len(data) <= end or data[4] & LZ4_VERSION_BITS != 0x40:
        raise _malformed(CompressionType.LZ4, len(data), "the frame header is cut short or of another version")
    return end


def xxh32_short(data: bytes) -> int:
    """xxHash32, seed 0, of fewer than 16 bytes.  A frame descriptor without a dictionary id has no more."""
    mask = 0xFFFFFFFF
    value = 0x165667B1 + len(data)
    at = 0
    while at + 4 <= len(data):
        value = value + int.from_bytes(data[at : at + 4], "little") * 0xC2B2AE3D & mask
        value = (value << 17 | value >> 15) * 0x27D4EB2F & mask
        at += 4
    for byte in data[at:]:
        value = value + byte * 0x165667B1 & mask
        value = (value << 11 | value >> 21) * 0x9E3779B1 & mask
    value = (value ^ value >> 15) * 0x85EBCA77 & mask
    value = (value ^ value >> 13) * 0xC2B2AE3D & mask
    return value ^ value >> 16
