"""Values for ``forebay perf``: the same ones in every run, made at next to no cost a record."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from itertools import count

from forebay._runtime.files import NoTextError, without_mark
from forebay.cli.failure import CommandError

BLOCK = 4 << 20
_LETTERS = bytes(ord("A") + byte % 26 for byte in range(256))
_CHOICES = 1 << 16


def random_letters(size: int) -> Iterator[bytes]:
    """Values of ``size`` letters A to Z, cut out of a block so large that no batch holds a piece twice."""
    block = hashlib.shake_256(b"letters").digest(max(BLOCK, size)).translate(_LETTERS)
    while True:
        for begin in range(0, len(block) - size + 1, size):
            yield block[begin : begin + size]


def monotonic() -> Iterator[bytes]:
    """The numbers from 0, as text."""
    return (b"%d" % number for number in count())


def from_file(path: str, delimiter: bytes, write: Callable[[str], object]) -> Iterator[bytes]:
    """Values drawn from a file's.

    Raises:
        CommandError: there is no such file, or nothing in it.
    """
    write(f"Reading payloads from: {os.path.abspath(path)}")
    try:
        with open(path, "rb") as file:
            data = without_mark(file.read())
    except OSError as error:
        raise CommandError(f"payload file {path!r} cannot be read: {error.strerror}") from None
    except NoTextError as error:
        raise CommandError(f"payload file {path!r} {error}") from None
    if not data:
        raise CommandError(f"payload file {path!r} is empty")
    values = data.removesuffix(delimiter).split(delimiter)
    write(f"Number of records read: {len(values)}")
    return _drawn(values)


def _drawn(values: list[bytes]) -> Iterator[bytes]:
    drawn = memoryview(hashlib.shake_256(b"choices").digest(_CHOICES * 4)).cast("I")
    while True:
        for number in drawn:
            yield values[number % len(values)]
