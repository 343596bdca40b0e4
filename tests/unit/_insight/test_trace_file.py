"""_insight.trace_file: what is written is read, and what is no whole trace is refused with a clause."""

from __future__ import annotations

import io
from array import array

import pytest

from forebay._insight.trace_file import (
    BATCH,
    TraceFileError,
    encoded,
    head_line,
    read_blocks,
    read_head,
    turned,
)


def big(kind: str, *numbers: int) -> bytes:
    return turned(array(kind, numbers)).tobytes()


def row(partition: int = 0, kept: int = 2) -> bytes:
    return big("q", 0, partition, 3, kept, 10, 20, 20, 30, 1, 0, 1, 300, 361)


def block(*rows: bytes, kept: int) -> bytes:
    return encoded(b"".join(rows), big("i", *range(kept)), big("i", *(-1,) * kept), big("i", *(100,) * kept))


def test_what_is_written_is_read() -> None:
    file = io.BytesIO(head_line({"seconds": 3}) + block(row(), row(5, 1), kept=3) + block(row(7, 0), kept=0))
    assert read_head(file) == {"forebay-trace": 1, "seconds": 3}
    first, second = read_blocks(file, 2)
    assert list(first.batches["partition"]) == [0, 5] and list(first.batches["created"]) == [10, 10]
    assert [list(first.records[name]) for name in ("time", "key", "value")] == [[0, 1, 2], [-1] * 3, [100] * 3]
    assert list(second.batches["partition"]) == [7] and not second.records["time"]
    assert tuple(first.batches) == BATCH


@pytest.mark.parametrize("line", [b"", b"\x00\x01", b"[load]\n", b"[]\n", b"{}\n", b"3\n", b"\xff\xfe\n"])
def test_another_file_is_no_trace(line: bytes) -> None:
    with pytest.raises(TraceFileError, match="^is no trace of forebay$"):
        read_head(io.BytesIO(line))


def test_another_version_is_named() -> None:
    with pytest.raises(TraceFileError, match="is a trace of version 2; this forebay reads version 1"):
        read_head(io.BytesIO(b'{"forebay-trace": 2}\n'))


def test_a_file_that_ends_early_is_cut_short_wherever_it_ends() -> None:
    whole = block(row(), row(), kept=4)
    for size in range(len(whole)):
        with pytest.raises(TraceFileError, match="^is cut short$"):
            list(read_blocks(io.BytesIO(whole[:size]), 1))


def test_a_damaged_block_is_refused_and_nothing_large_is_read_for_it() -> None:
    damaged = bytearray(block(row(), kept=2))
    with pytest.raises(TraceFileError, match="cut short"):
        list(read_blocks(io.BytesIO(b"\xff\xff\xff\xff" + damaged), 1))
    damaged[6] ^= 0xFF
    with pytest.raises(TraceFileError, match="damaged"):
        list(read_blocks(io.BytesIO(bytes(damaged)), 1))
    wrong = block(row(), kept=1)
    with pytest.raises(TraceFileError, match="the same length"):
        list(read_blocks(io.BytesIO(wrong), 1))
