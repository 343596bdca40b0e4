"""The interpreted twin of `_runtime/xxhash64.pxd`: XXH64, the same numbers on anything with bytes."""

from __future__ import annotations

from typing import Any

_XX1, _XX2, _XX3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_XX4, _XX5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MASK64 = (1 << 64) - 1


def _xx_left(value: int, bits: int) -> int:
    value &= MASK64
    return (value << bits | value >> (64 - bits)) & MASK64


def _xx_round(lane: int, word: int) -> int:
    return _xx_left(lane + word * _XX2, 31) * _XX1 & MASK64


def xxhash64(seed: int, data: Any, size: int) -> int:
    found = bytes(data[:size]) if size else b""
    at = 0
    digest = seed + _XX5
    if size >= 32:
        lanes = [seed + _XX1 + _XX2, seed + _XX2, seed, seed - _XX1]
        for at in range(0, size - size % 32, 8):
            lane = at // 8 % 4
            lanes[lane] = _xx_round(lanes[lane], int.from_bytes(found[at : at + 8], "little"))
        at = size - size % 32
        digest = sum(_xx_left(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            digest = ((digest ^ _xx_round(0, lane)) * _XX1 + _XX4) & MASK64
    digest += size
    while size - at >= 8:
        digest = _xx_left(digest ^ _xx_round(0, int.from_bytes(found[at : at + 8], "little")), 27) * _XX1 + _XX4
        at += 8
    if size - at >= 4:
        digest = _xx_left(digest ^ int.from_bytes(found[at : at + 4], "little") * _XX1, 23) * _XX2 + _XX3
        at += 4
    for byte in found[at:]:
        digest = _xx_left(digest ^ byte * _XX5, 11) * _XX1
    digest &= MASK64
    digest = (digest ^ (digest >> 33)) * _XX2 & MASK64
    digest = (digest ^ (digest >> 29)) * _XX3 & MASK64
    return digest ^ (digest >> 32)
