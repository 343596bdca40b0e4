"""XXH64 by published values; the compiled form is tried in ``tests/unit/producer/_columns/test_fingerprint.py``."""

from __future__ import annotations

import pytest

from forebay._runtime.xxhash64 import xxhash64


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"The quick brown fox jumps over the lazy dog", 0x0B242D361FDA71BC),
    ],
)
def test_published_values(text: bytes, digest: int) -> None:
    assert xxhash64(0, text, len(text)) == digest
