from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._protocol.primitives import Reader, Writer
from forebay.errors import IllegalArgumentError, ProtocolError


def reader(payload: bytes, flexible: bool = True) -> Reader:
    return Reader(payload, what="Test v1 response", flexible=flexible)


def written(flexible: bool, write: Callable[[Writer], None]) -> bytes:
    writer = Writer(flexible=flexible)
    write(writer)
    return writer.take()


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (0, "00"),
        (1, "01"),
        (63, "3f"),
        (64, "40"),
        (8191, "ff3f"),
        (8192, "8040"),
        (1048575, "ffff3f"),
        (1048576, "808040"),
        (2147483647, "ffffffff07"),
        (0xFFFFFFFF, "ffffffff0f"),
        (0x80000000, "8080808008"),
    ],
)
def test_unsigned_varints(value: int, wire: str) -> None:
    """A A11 unsigned varint (flexible protocol fields)."""
    assert written(True, lambda writer: writer.uvarint(value)).hex() == wire
    assert reader(bytes.fromhex(wire)).uvarint() == value


@pytest.mark.parametrize("wire", ["", "80", "80808080", "8080808080", "ffffffffff01", "ffffffff10", "8080808080 01"])
def test_varints_that_end_nowhere_or_too_late(wire: str) -> None:
    with pytest.raises(ProtocolError, match=r"Test v1 response: .* at byte"):
        reader(bytes.fromhex(wire)).uvarint()


@given(st.booleans(), st.none() | st.text(max_size=300))
def test_strings_come_back(flexible: bool, value: str | None) -> None:
    data = written(flexible, lambda writer: writer.string(value))
    assert reader(data, flexible).nullable_string() == value
    size = -1 if value is None else len(value.encode())
    prefix = {True: b"" if size > 126 else bytes([size + 1]), False: struct.pack(">h", size)}[flexible]
    assert data.startswith(prefix)


def test_strings_have_a_limit() -> None:
    assert len(written(True, lambda writer: writer.string("x" * 32767))) == 32767 + 3
    for flexible in (True, False):
        with pytest.raises(IllegalArgumentError, match="it has 32768 bytes in UTF-8, at most 32767"):
            written(flexible, lambda writer: writer.string("\u00e4" * 16384))


@pytest.mark.parametrize(
    ("flexible", "wire", "problem"),
    [
        (False, "fffe", "string of length -2"),
        (False, "8000", "string of length -32768"),
        (False, "0005 6161", "5 bytes expected, 2 left"),
        (True, "06 6161", "5 bytes expected, 2 left"),
        (True, "ffffffff0f", "4294967294 bytes expected, 0 left"),
        (False, "0002 c328", "not UTF-8"),
        (True, "03 c328", "not UTF-8"),
        (False, "ffff", "null where a string is required"),
        (True, "00", "null where a string is required"),
    ],
)
def test_bad_strings(flexible: bool, wire: str, problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem):
        reader(bytes.fromhex(wire), flexible).string()


@pytest.mark.parametrize(
    ("flexible", "wire", "problem"),
    [
        (False, "fffffffe", "array of -2 elements"),
        (False, "7fffffff 00", "array of 2147483647 elements of at least 4 bytes, but 1 bytes left"),
        (False, "00000002 00000001", "array of 2 elements"),
        (True, "03 00000001", "array of 2 elements"),
        (False, "ffffffff", "null where an array is required"),
        (True, "00", "null where an array is required"),
    ],
)
def test_bad_counts(flexible: bool, wire: str, problem: str) -> None:
    data = bytes.fromhex(wire)
    with pytest.raises(ProtocolError, match=problem):
        reader(data, flexible).int32_array()
    source = reader(data, flexible)
    with pytest.raises(ProtocolError, match=problem):
        source.array(source.int32, 4)


@given(st.booleans(), st.lists(st.integers(-(2**31), 2**31 - 1), max_size=200))
def test_arrays_come_back(flexible: bool, values: list[int]) -> None:
    writer = Writer(flexible=flexible)
    writer.count(len(values))
    for value in values:
        writer.int32(value)
    source = reader(writer.take(), flexible)
    assert source.int32_array() == tuple(values)


def test_a_null_array_has_the_count_minus_one() -> None:
    for flexible in (True, False):
        assert reader(written(flexible, lambda writer: writer.count(-1)), flexible).count(4) == -1


@pytest.mark.parametrize(
    ("name", "layout", "values"),
    [
        ("int16", ">h", [-32768, -1, 0, 32767]),
        ("int32", ">i", [-(2**31), -1, 0, 2**31 - 1]),
        ("int64", ">q", [-(2**63), -1, 0, 2**63 - 1]),
    ],
)
def test_numbers(name: str, layout: str, values: list[int]) -> None:
    for value in values:
        data = written(False, lambda writer, value=value: getattr(writer, name)(value))  # type: ignore[misc]
        assert data == struct.pack(layout, value)
        assert getattr(reader(data), name)() == value
        with pytest.raises(ProtocolError, match=f"{len(data)} bytes expected, {len(data) - 1} left"):
            getattr(reader(data[:-1]), name)()
    with pytest.raises(struct.error):
        getattr(Writer(flexible=False), name)(values[-1] + 1)


def test_int8_boolean_and_raw() -> None:
    assert written(True, lambda writer: writer.int8(-2)) == b"\xfe"
    assert written(True, lambda writer: writer.boolean(True)) == b"\1"
    assert written(False, lambda writer: writer.boolean(False)) == b"\0"
    source = reader(b"\0\1\7abc")
    assert [source.boolean() for _ in range(3)] == [False, True, True]
    assert source.raw(3) == b"abc"
    with pytest.raises(ProtocolError):
        source.boolean()


def tagged(fields: list[tuple[int, bytes]]) -> bytes:
    writer = Writer(flexible=True)
    writer.uvarint(len(fields))
    for tag, data in fields:
        writer.uvarint(tag)
        writer.uvarint(len(data))
        writer.raw(data)
    return writer.take()


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.binary(max_size=20)), max_size=8), st.binary(max_size=4))
def test_unknown_tags_are_skipped(fields: list[tuple[int, bytes]], after: bytes) -> None:
    source = reader(tagged(fields) + after)
    source.tags()
    assert source.raw(len(after)) == after


def test_known_tags_are_read_within_their_own_bytes() -> None:
    found: list[Any] = []
    source = reader(tagged([(0, b"\0\0\0\5rest"), (9, b"?"), (3, b"\0\7")]) + b"!")
    source.tags({0: lambda: found.append(source.int32()), 3: lambda: found.append(source.int16())})
    assert found == [5, 7]
    assert source.raw(1) == b"!"


def test_a_known_tag_cannot_read_beyond_its_bytes() -> None:
    found: list[int] = []
    source = reader(tagged([(0, b"\0\0")]) + b"\0\0\0\0")
    with pytest.raises(ProtocolError, match="4 bytes expected, 2 left"):
        source.tags({0: lambda: found.append(source.int32())})
    assert found == []


@pytest.mark.parametrize("wire", ["", "01", "0100", "0100 05 aa", "ffffffff0f 00", "02 00 00"])
def test_tags_cut_short(wire: str) -> None:
    with pytest.raises(ProtocolError):
        reader(bytes.fromhex(wire)).tags()


def test_without_flexible_there_are_no_tags() -> None:
    source = reader(b"\1\2", flexible=False)
    source.tags()
    assert source.position == 0
    assert written(False, lambda writer: writer.tags()) == b""
