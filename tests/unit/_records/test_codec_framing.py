"""Kafka's framing of snappy and lz4; what compressors make of it is in test_compression."""

from __future__ import annotations

import cramjam
import pytest

from forebay._records.codec_framing import (
    LZ4_BLOCK,
    LZ4_HEADER,
    SNAPPY_HEADER,
    has_kafka_blocks,
    lz4_frame_of,
    pieces_of,
    plain_lz4_frame,
    xerial_from_frames,
)


def test_snappy_frames_of_other_kinds_are_left_out() -> None:
    padding = b"\xfe\x03\x00\x00abc"
    assert xerial_from_frames(b"\xff\x06\x00\x00sNaPpY" + padding) == SNAPPY_HEADER


@pytest.mark.parametrize(
    ("sizes", "expected"), [([], []), ([0], []), ([3], [3]), ([4, 5], [4, 4, 1]), ([9, 0, 1], [4, 4, 1, 1])]
)
def test_pieces_have_a_limit_and_no_piece_spans_two_chunks(sizes: list[int], expected: list[int]) -> None:
    chunks = [bytes([number]) * size for number, size in enumerate(sizes)]
    pieces = list(pieces_of(chunks, 4))
    assert [len(piece) for piece in pieces] == expected
    assert b"".join(pieces) == b"".join(chunks)


def test_the_blocks_of_an_lz4_frame_lose_their_checksums() -> None:
    block = b"\x03\x00\x00\x80abc"
    with_checksums = bytearray(LZ4_HEADER) + block + b"sum!" + bytes(4)
    with_checksums[4] |= 0x10
    assert plain_lz4_frame(memoryview(with_checksums)) == LZ4_HEADER + block + bytes(4)


def test_an_lz4_frame_stores_the_blocks_that_do_not_shrink() -> None:
    frame = lz4_frame_of(bytes(LZ4_BLOCK) + b"abc", lambda piece: b"small" if len(piece) > 3 else b"longer")
    assert frame == LZ4_HEADER + b"\x05\0\0\0small" + b"\x03\0\0\x80abc" + bytes(4)
    assert lz4_frame_of(b"", bytes) == LZ4_HEADER + bytes(4)


def test_cramjam_writes_the_blocks_that_kafka_expects() -> None:
    assert has_kafka_blocks(cramjam.lz4)
