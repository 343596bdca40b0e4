"""Kafka's framing of snappy and lz4: headers, block sizes, and how to make it from the packages' frames.

snappy is in the xerial framing, lz4 is a frame of independent 64 KiB blocks without size or checksum.  The packages
write frames of their own kind faster than bare blocks, so the blocks are taken out of those frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from forebay._records.codec_packages import Chunk

SNAPPY_BLOCK = 32 * 1024
SNAPPY_HEADER = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
LZ4_BLOCK = 64 * 1024
LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
LZ4_BLOCK_CHECKSUM_BIT = 0x10
LZ4_STORED_BIT = 0x80000000


def xerial_from_frames(framed: bytes | bytearray) -> bytes:
    """Kafka's framing of the raw blocks inside a stream of the snappy frame format."""
    out = bytearray(SNAPPY_HEADER)
    view = memoryview(framed)
    at = 0
    while at < len(view):
        kind = view[at]
        end = at + 4 + int.from_bytes(view[at + 1 : at + 4], "little")
        if kind == 0:
            out += (end - at - 8).to_bytes(4, "big")
            out += view[at + 8 : end]
        elif kind == 1:
            out += _literal_block(view[at + 8 : end])
        at = end
    return bytes(out)


def _literal_block(raw: memoryview) -> bytes:
    """A length and a raw block that holds ``raw`` (1 to 65536 bytes) as one literal."""
    size = len(raw)
    block = bytearray()
    rest = size
    while rest > 0x7F:
        block.append(rest & 0x7F | 0x80)
        rest >>= 7
    block.append(rest)
    if size <= 60:
        block.append(size - 1 << 2)
    else:
        # The shortest form, as encoders write it.  Some decoders fail on a long length before a short literal.
        wide = size > 256
        block.append((61 if wide else 60) << 2)
        block += (size - 1).to_bytes(2 if wide else 1, "little")
    block += raw
    return len(block).to_bytes(4, "big") + block


def has_kafka_blocks(lz4: Any) -> bool:
    """Whether cramjam's ``lz4`` writes blocks of 64 KiB; another version of the package may have others."""
    return bool(memoryview(lz4.Compressor(0, False, False).finish())[5] == LZ4_HEADER[5])


def plain_lz4_frame(view: memoryview) -> bytes:
    """The blocks of a frame (no content size, no content checksum) under Kafka's header, without their checksums."""
    trailer = 4 * bool(view[4] & LZ4_BLOCK_CHECKSUM_BIT)
    out = bytearray(LZ4_HEADER)
    at = len(LZ4_HEADER)
    while at < len(view):
        size = int.from_bytes(view[at : at + 4], "little") & 0x7FFFFFFF
        out += view[at : at + 4 + size]
        at += 4 + size + trailer
        if size == 0:
            break
    return bytes(out)


def lz4_frame_of(data: Chunk, pack: Callable[[Chunk], bytes | memoryview]) -> bytes:
    """Kafka's frame of ``data``: ``pack`` makes one bare block of at most 64 KiB of input."""
    out = bytearray(LZ4_HEADER)
    for piece in pieces_of([data], LZ4_BLOCK):
        block = pack(piece)
        if len(block) < len(piece):
            out += len(block).to_bytes(4, "little")
            out += block
        else:
            out += (len(piece) | LZ4_STORED_BIT).to_bytes(4, "little")
            out += piece
    out += bytes(4)
    return bytes(out)


def pieces_of(chunks: Sequence[Chunk], most: int) -> Iterator[Chunk]:
    """``chunks`` in pieces of at most ``most`` bytes."""
    for chunk in chunks:
        if len(chunk) <= most:
            if len(chunk):
                yield chunk
            continue
        view = memoryview(chunk)
        for at in range(0, len(view), most):
            yield view[at : at + most]
