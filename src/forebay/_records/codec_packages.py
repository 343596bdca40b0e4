"""The packages of the codecs.  Not every Python has all of them, so most codecs can use more than one.

gzip needs none, lz4 uses one of two, zstd one of three, and snappy has only one.  A codec without its package raises a
ConfigError that names the package to install.
"""

from __future__ import annotations

import importlib
from typing import Any

from forebay.errors import ConfigError

Chunk = bytes | bytearray | memoryview

ZSTD_PACKAGES = ("zstandard", "compression.zstd", "backports.zstd")
"""In order of preference; the second is Python's own from 3.14 on.  Only zstandard takes many batches in one call."""


def is_zstandard(package: Any) -> bool:
    """Whether it is the package zstandard; the others have the interface of Python's module."""
    return hasattr(package, "ZstdCompressionParameters")


class StandardZstd:
    """A context of Python's zstd module that makes the same frames as ``zstandard``."""

    def __init__(self, package: Any, level: int, parameters: dict[str, int]) -> None:
        names = package.CompressionParameter
        options = {names.compression_level: level, names.content_size_flag: 0}
        options.update((names[name], value) for name, value in parameters.items())
        self._stream = package.ZstdCompressor(options=options)
        self._whole_frame = package.ZstdCompressor.FLUSH_FRAME

    def compress(self, data: Chunk) -> bytes:
        """One frame.  The size is told first; without it the tables would be as large as for any size."""
        self._stream.set_pledged_input_size(len(data))
        packed: bytes = self._stream.compress(data, self._whole_frame)
        return packed


def optional_package(name: str) -> Any:
    """The module ``name``, imported now; None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def load_package(codec: str, *names: str) -> Any:
    """The first module of ``names`` that is installed, imported now.

    Args:
        codec: its name, for the error.

    Raises:
        forebay.errors.ConfigError: none of their packages is installed.
    """
    reasons: list[ImportError] = []
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError as error:
            reasons.append(error)
    package, *others = [name.removesuffix(".frame") for name in names if not name.startswith("compression.")]
    raise ConfigError(
        f"compression.type={codec} needs the Python package {package}, which is not installed ({reasons[0]}): "
        f"pip install {' or '.join([package, *others])}"
    ) from reasons[0]
