"""_insight.trace_file: what is written is read, and what is no whole trace is refused with a clause."""

from __future__ import annotations

import io
from array import array

import pytest

from forebay._insight.trace_file import BATCH, Noted, TraceFileError, encoded, head_line, read_blocks, read_head


def column(*numbers: int) -> bytes:
    found = array("i", numbers)
    found.byteswap()
    return found.tobytes()


def noted(partition: int = 0, kept: int = 2) -> Noted:
    numbers = [partition, 3, kept, 10, 20, 20, 30, 1, 0, 1, 300, 361]
    return Noted(0, numbers, column(*range(kept)), column(*(-1,) * kept), column(*(100,) * kept))


def test_what_is_written_is_read() -> None:
    file = io.BytesIO(head_line({"seconds": 3}) + encoded([noted(), noted(5, 1)]) + encoded([noted(7, 0)]))
    assert read_head(file) == {"forebay-trace": 1, "seconds": 3}
    first, second = read_blocks(file, 2)
    assert list(first.batches["partition"]) == [0, 5] and list(first.batches["created"]) == [10, 10]
    assert [list(first.records[name]) for name in ("time", "key", "value")] == [[0, 1, 0], [-1] * 3, [100] * 3]
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
    block = encoded([noted(), noted()])
    for size in range(len(block)):
        with pytest.raises(TraceFileError, match="^is cut short$"):
            list(read_blocks(io.BytesIO(block[:size]), 1))


def test_a_damaged_block_is_refused_and_nothing_large_is_read_for_it() -> None:
    block = bytearray(encoded([noted()]))
    with pytest.raises(TraceFileError, match="cut short"):
        list(read_blocks(io.BytesIO(b"\xff\xff\xff\xff" + block), 1))
    block[6] ^= 0xFF
    with pytest.raises(TraceFileError, match="damaged"):
        list(read_blocks(io.BytesIO(bytes(block)), 1))
    wrong = encoded([noted()._replace(values=column(1))])
    with pytest.raises(TraceFileError, match="the same length"):
        list(read_blocks(io.BytesIO(wrong), 1))
