"""Memory that an object owns: written through its pointer, seen through views that keep it."""

from __future__ import annotations

import gc

import pytest

import forebay
from forebay._accumulator.pool import BufferPool, adopt
from forebay._runtime import memory as _memory


def test_the_twin_s_memory_is_seen_where_it_was_written() -> None:
    memory = _memory.new_memory(8)
    memory[2:4] = b"ab"
    view = _memory.whole_view(None, memory)
    _memory.free_memory(memory)
    assert bytes(view) == b"\0\0ab\0\0\0\0"
    with pytest.raises(TypeError, match="whole_view"):
        _memory.show_memory(None, None, memory, 8, 0)


def test_the_twin_s_memory_grows_and_keeps_what_was_written() -> None:
    memory = _memory.new_memory(4)
    memory[:] = b"abcd"
    assert bytes(_memory.resized_memory(memory, 4, 6)) == b"abcd\0\0"


def test_views_keep_the_memory_of_a_buffer_that_is_gone() -> None:
    buffer = BufferPool(1 << 20, 1 << 10).allocate(1 << 16, 0, None)
    assert buffer is not None
    buffer.data[:] = bytes(range(256)) * 256
    view = buffer.data[256:1024]
    del buffer
    gc.collect()
    others = [bytearray(b"\xff" * (1 << 16)) for _ in range(16)]
    assert bytes(view) == bytes(range(256)) * 3 and len(others) == 16


def test_a_chunk_s_bytes_can_be_written_and_adopted_ones_cannot() -> None:
    pool = BufferPool(1 << 20, 1 << 10)
    buffer = pool.allocate(1 << 10, 0, None)
    assert buffer is not None and not buffer.data.readonly
    adopted = adopt(pool, b"packed", 0)
    assert adopted.data.readonly and bytes(adopted.data[1:3]) == b"ac"
    adopted.release()


@pytest.mark.skipif(forebay.implementation != "compiled", reason="a Python class exports no buffer before 3.12")
def test_a_compiled_buffer_is_a_buffer() -> None:
    buffer = BufferPool(1 << 20, 1 << 10).allocate(1 << 10, 0, None)
    view = memoryview(buffer)  # type: ignore[arg-type]
    assert (view.nbytes, view.format, view.readonly) == (1 << 10, "B", False)
