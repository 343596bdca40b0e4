"""cli.input.compressed: files of several members, and files that are damaged."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from typing import Any

import pytest

from forebay._records.codec_packages import ZSTD_PACKAGES, optional_package
from forebay.cli.failure import CommandError
from forebay.cli.input import compressed

zstandard: Any = pytest.importorskip("zstandard", reason="this Python has no zstandard")
PACKERS: dict[str, Callable[[bytes], bytes]] = {"x.gz": gzip.compress, "x.ZST": zstandard.compress}


def whole(name: str, data: bytes) -> bytes:
    stream = compressed.opened(name, io.BytesIO(data))
    found = []
    while piece := stream.read1(1000):
        found.append(piece)
    assert stream.tell() == len(data)
    stream.close()
    return b"".join(found)


def test_the_name_without_the_suffix() -> None:
    names = ["a.json.gz", "a.ZST", "a.gz.txt", ".gz"]
    assert [compressed.without_suffix(name) for name in names] == ["a.json", "a", "a.gz.txt", ""]
    stream = io.BytesIO()
    assert compressed.opened("a.txt", stream) is stream


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("size", [0, 1, 5000, 3_000_000])
def test_several_members_are_one_text(name: str, size: int) -> None:
    text = bytes(number * number % 251 for number in range(size))
    pack = PACKERS[name]
    assert whole(name, pack(text)) == text
    assert whole(name, pack(text[: size // 3]) + pack(b"") + pack(text[size // 3 :])) == text


@pytest.mark.parametrize("name", PACKERS)
def test_a_damaged_file_is_one_sentence(name: str) -> None:
    packed = bytearray(PACKERS[name](b"".join(b"%d\n" % number for number in range(100_000))))
    for cut in (3, len(packed) // 2, len(packed) - 1):
        with pytest.raises(CommandError, match=rf"^{name}: the compressed file is not complete$") as caught:
            whole(name, bytes(packed[:cut]))
        assert caught.value.exit_code == 1
    packed[len(packed) // 2] ^= 0xFF
    packed[1] ^= 0xFF
    with pytest.raises(CommandError, match=rf"^{name}: cannot be decompressed: [^\n]+$"):
        whole(name, bytes(packed))
    with pytest.raises(CommandError, match=rf"^{name}: cannot be decompressed: "):
        whole(name, b"plain text")


def test_zeros_do_not_fill_the_memory() -> None:
    stream = compressed.opened("x.zst", io.BytesIO(zstandard.compress(bytes(100_000_000))))
    largest = 0
    while piece := stream.read1(1000):
        largest = max(largest, len(piece))
    assert largest < 48 << 20


def test_other_packages_for_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = zstandard.compress(b"a\n" * 1000) * 2
    others = [name for name in ZSTD_PACKAGES[1:] if optional_package(name) is not None]
    if not others:
        pytest.skip("there is no other package for zstd here")
    monkeypatch.setattr(compressed, "ZSTD_PACKAGES", tuple(others))
    assert whole("x.zst", packed) == b"a\n" * 2000
    monkeypatch.setattr(compressed, "ZSTD_PACKAGES", ("no_such_package",))
    with pytest.raises(CommandError, match="x.zst: reading zstd needs the package zstandard: pip install zstandard"):
        whole("x.zst", packed)
