"""_codec.piece: parts of a bytearray for whoever takes buffers, equal in both forms."""

from __future__ import annotations

import gc
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay import implementation
from forebay._runtime.piece import piece


@given(st.binary(max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_the_bytes_from_one_place_to_another(data: bytes, one: int, other: int) -> None:
    start, stop = sorted((min(one, len(data)), min(other, len(data))))
    found = piece(bytearray(data), start, stop)
    assert bytes(found) == b"".join([found]) == data[start:stop]
    assert len(found) == len(memoryview(found)) == stop - start


def test_nothing_is_copied_and_the_bytearray_stays() -> None:
    data = bytearray(b"abcdef")
    found = piece(data, 2, 4)
    data[3] = ord("x")
    assert bytes(found) == b"cx"
    view = memoryview(found)
    del data, found
    gc.collect()
    assert bytes(view) == b"cx"


@pytest.mark.skipif(implementation != "compiled", reason="interpreted, a piece is a memoryview's slice")
def test_it_cannot_be_written_to_and_lets_its_bytearray_go() -> None:
    data = bytearray(10)
    count = sys.getrefcount(data)
    found = piece(data, 0, 4)
    assert memoryview(found).readonly
    assert sys.getrefcount(data) == count + 1
    del found
    assert sys.getrefcount(data) == count
