"""Compressed files of ``forebay produce``: gzip by the standard library, zstd by the codec's own package.

A file may have several members or frames, one after the other, as ``cat`` joins them.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Any

from forebay._records.codec_packages import ZSTD_PACKAGES, is_zstandard, optional_package
from forebay.cli.failure import FAILED, CommandError, one_line

SUFFIXES = (".gz", ".zst")
STEP = 1024
"""Compressed bytes at once: a file of zeros must not become a gigabyte of memory."""


def without_suffix(path: str) -> str:
    """The name that says the format: without ``.gz`` or ``.zst``."""
    for suffix in SUFFIXES:
        if path.lower().endswith(suffix):
            return path[: -len(suffix)]
    return path


def opened(path: str, stream: Any) -> Any:
    """The bytes of a file whose name says that they are compressed; else ``stream`` itself.

    Raises:
        CommandError: the package for zstd is missing.
    """
    name = path.lower()
    if name.endswith(".gz"):
        return Decompressed(path, stream, gzip.GzipFile(fileobj=stream), (OSError, EOFError, zlib.error))
    if name.endswith(".zst"):
        make, failure = _zstd(path)
        return Decompressed(path, stream, _Frames(stream, make), (failure, OSError, EOFError))
    return stream


def _zstd(path: str) -> tuple[Callable[[], Any], type[Exception]]:
    """Makes decompressors of one frame, and what they raise."""
    for name in ZSTD_PACKAGES:
        package = optional_package(name)
        if package is None:
            continue
        if is_zstandard(package):
            context = package.ZstdDecompressor()
            return context.decompressobj, package.ZstdError
        return package.ZstdDecompressor, package.ZstdError
    raise CommandError(f"{path}: reading zstd needs the package zstandard: pip install zstandard")


class Decompressed:
    """A stream of decompressed bytes; ``tell`` counts those of the file, for progress."""

    def __init__(self, path: str, file: Any, plain: Any, failures: tuple[type[Exception], ...]) -> None:
        self._path = path
        self._file = file
        self._plain = plain
        self._failures = failures

    def read1(self, size: int) -> bytes:
        """At least one byte, if there is one; perhaps more than ``size``.

        Raises:
            CommandError: the file is damaged, or ends too early.
        """
        try:
            data: bytes = self._plain.read1(size)
            return data
        except EOFError:
            raise CommandError(f"{self._path}: the compressed file is not complete", FAILED) from None
        except self._failures as error:
            raise CommandError(f"{self._path}: cannot be decompressed: {one_line(str(error))}", FAILED) from None

    def tell(self) -> int:
        """How much of the file was read."""
        return int(self._file.tell())

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class _Frames:
    """The frames of a zstd file."""

    def __init__(self, file: Any, make: Callable[[], Any]) -> None:
        self._file = file
        self._make = make
        self._frame: Any = None
        self._left = b""

    def read1(self, size: int) -> bytes:
        """About ``size`` bytes; less at the end.

        Raises:
            EOFError: the last frame is not complete.
        """
        found: list[bytes] = []
        count = 0
        while count < size:
            packed = self._left or self._file.read(STEP)
            if not packed:
                if self._frame is not None:
                    raise EOFError
                break
            if self._frame is None:
                self._frame = self._make()
            found.append(self._frame.decompress(packed))
            count += len(found[-1])
            self._left = b""
            if self._frame.eof:
                self._left = self._frame.unused_data
                self._frame = None
        return b"".join(found)
