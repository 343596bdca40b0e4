"""The file of a trace: one line of JSON, then blocks of columns.  A recorder writes it, and ``tune`` reads it.

A block has the columns ``BATCH`` (64 bits) of some batches, then the columns ``RECORD`` (32 bits) of their records that
were kept, batch by batch.  Each column is compressed by zlib after its length.  Numbers are big-endian.  Times are in
us: a batch's from the beginning of the recording, a record's from the record before it in its batch, the first one's
from the batch's creation.  A trace of this version may lack ``stalls`` in its line: the first recorders did not note
them.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple

VERSION = 1
MARK = "forebay-trace"
"""The first key of the line, with the version."""
BATCH = (
    "topic",
    "partition",
    "count",
    "kept",
    "created",
    "closed",
    "drained",
    "answered",
    "node",
    "attempts",
    "outcome",
    "raw",
    "size",
)
"""Columns of batches: the topic's number; records, and how many were kept; times; the node of the last attempt; how
often it was sent again; the outcome; bytes of records before and of all after compression."""
RECORD = ("time", "key", "value")
"""Columns of records: time, and sizes of key and value; -1 for none."""
LENGTH = struct.Struct(">I")
MOST = 1 << 28
"""Bytes of a column: more is damage."""
LINE = 1 << 26
QUICK = 1
"""zlib's level: records of one moment and of one size compress well at any."""


class TraceFileError(Exception):
    """What is read is no trace, or not all of one; its message is a clause that follows the file's name."""


class Block(NamedTuple):
    """Columns by their names."""

    batches: Mapping[str, array[int]]
    records: Mapping[str, array[int]]


def encoded(rows: bytes, times: bytes, keys: bytes, values: bytes) -> bytes:
    """A block.

    Args:
        rows: of each batch a number of each column.
        times: as the other two, a column of the records.
    """
    columns = [*(column.tobytes() for column in of_rows(rows)), times, keys, values]
    parts: list[bytes] = []
    for column in columns:
        packed = zlib.compress(column, QUICK)
        parts += (LENGTH.pack(len(packed)), packed)
    return b"".join(parts)


def of_rows(rows: bytes) -> list[array[int]]:
    """The columns of batches; their numbers are still in the order of bytes of the file."""
    numbers = array("q", rows)
    return [numbers[at :: len(BATCH)] for at in range(len(BATCH))]


def head_line(head: Mapping[str, Any]) -> bytes:
    """The first line."""
    return json.dumps({MARK: VERSION, **head}, separators=(",", ":")).encode() + b"\n"


def read_head(file: IO[bytes]) -> dict[str, Any]:
    """The first line's values.

    Raises:
        TraceFileError: it is none, or of another version.
    """
    line = file.readline(LINE)
    try:
        head = json.loads(line)
        version = head[MARK]
    except (ValueError, TypeError, KeyError):
        raise TraceFileError("is no trace of forebay") from None
    if version != VERSION:
        raise TraceFileError(f"is a trace of version {version!r}; this forebay reads version {VERSION}")
    return dict(head)


def read_blocks(file: IO[bytes], count: int) -> Iterator[Block]:
    """So many blocks.

    Raises:
        TraceFileError: the file ends before, or is damaged.
    """
    for _ in range(count):
        batches = {name: _column(file, "q") for name in BATCH}
        records = {name: _column(file, "i") for name in RECORD}
        if len({len(column) for column in batches.values()}) != 1 or any(
            len(column) != sum(batches["kept"]) for column in records.values()
        ):
            raise TraceFileError("is damaged: its columns do not have the same length")
        yield Block(batches, records)


def _column(file: IO[bytes], kind: str) -> array[int]:
    length = file.read(LENGTH.size)
    size = LENGTH.unpack(length)[0] if len(length) == LENGTH.size else 0
    packed = file.read(size) if size <= MOST else b""
    if len(length) < LENGTH.size or len(packed) < size:
        raise TraceFileError("is cut short")
    column: array[int] = array(kind)
    try:
        column.frombytes(zlib.decompress(packed))
    except (zlib.error, ValueError) as error:
        raise TraceFileError(f"is damaged: {error}") from None
    return turned(column)


def turned(column: array[int]) -> array[int]:
    """With the bytes of each number in the order of the file, or in that of this machine again; changes the column."""
    if sys.byteorder == "little":
        column.byteswap()
    return column
