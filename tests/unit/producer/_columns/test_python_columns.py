"""Lists and NumPy arrays as columns: what they mean, and which ones are refused."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from forebay.errors import IllegalArgumentError
from forebay.producer._columns.python_columns import bytes_of, headers_of, ints_of, timestamps_of

PACKED = np.array([(1, 5, b"a"), (2, 6, b"b")], dtype=[("pad", "i1"), ("n", "<i8"), ("s", "S1")])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ([b"a", "b", None], [b"a", b"b", None]),
        ((b"a",), [b"a"]),
        (np.array([b"ab\0", b"", b"c\0d"], "S3"), [b"ab", b"", b"c\0d"]),
        (np.array([b"ab", b"c"], "V2"), [b"ab", b"c\0"]),
        (np.array(["é", "x"]), ["é".encode(), b"x"]),
        (np.array([b"a", None, "b"], object), [b"a", None, b"b"]),
        (np.array([b"a", b"b", b"c"])[::-2], [b"c", b"a"]),
        (np.ma.masked_array(np.array([b"a", b"b"]), [False, True]), [b"a", None]),
        (PACKED["s"], [b"a", b"b"]),
        ([], []),
    ],
)
def test_bytes(source: Any, expected: list[bytes | None]) -> None:
    column = bytes_of("c", source)
    assert [column.get(row) for row in range(column.length)] == expected


@pytest.mark.parametrize("kind", ["i1", "u1", "<i2", ">i2", "<u4", ">i8", "u8"])
def test_integers_of_numpy(kind: str) -> None:
    column = ints_of("c", np.array([1, 2, 3], kind)[::2])
    assert [column.value(row) for row in range(column.length)] == [1, 3]


@pytest.mark.parametrize("source", [[1, None, np.int64(3)], np.array([1, None, 3], object), (1, None, 3)])
def test_integers_in_lists(source: Any) -> None:
    column = ints_of("c", source)
    assert [column.is_null(row) or column.value(row) for row in range(3)] == [1, True, 3]


def test_an_int_stands_for_all_rows() -> None:
    assert [ints_of("c", 7).value(row) for row in (0, 10**12)] == [7, 7]
    assert timestamps_of("c", 7).millis(10**12) == 7


def test_masked_and_unaligned_integers() -> None:
    masked = ints_of("c", np.ma.masked_array([1, 2], [True, False]))
    assert [masked.is_null(0), masked.value(1)] == [True, 2]
    assert [ints_of("c", PACKED["n"]).value(row) for row in range(2)] == [5, 6]


@pytest.mark.parametrize(
    ("unit", "millis"), [("D", 86_400_000), ("h", 3_600_000), ("s", 1000), ("ms", 1), ("25s", 25_000)]
)
def test_datetimes(unit: str, millis: int) -> None:
    column = timestamps_of("c", np.array([1, 2], "i8").view(f"M8[{unit}]"))
    assert [column.millis(0), column.millis(1)] == [millis, 2 * millis]


@pytest.mark.parametrize("unit", ["us", "ns", "ps"])
def test_datetimes_round_down(unit: str) -> None:
    source = np.array([1_700_000_000_001_999], "M8[us]").astype(f"M8[{unit}]") if unit != "ps" else None
    if source is None:
        source = np.array([1_999_999_999], "M8[ps]")
    column = timestamps_of("c", source)
    assert column.millis(0) == (1 if unit == "ps" else 1_700_000_000_001)


def test_nat_is_null() -> None:
    column = timestamps_of("c", np.array(["NaT", "1970-01-02"], "M8[s]"))
    assert [column.is_null(0), column.is_null(1)] == [True, False]


def test_headers_are_what_send_takes() -> None:
    column = headers_of("c", [None, [("a", b"1")], {"a": b"1"}, ()])
    assert [column.section(row) for row in range(4)] == [b"\0", b"\2\2a\2" + b"1", b"\2\2a\2" + b"1", b"\0"]
    assert headers_of("c", np.array([None, {"a": None}], object)).section(1) == b"\2\2a\1"


def test_headers_of_many_rows_are_held_at_their_size() -> None:
    rows = [[("kind", b"%04d" % row)] for row in range(2000)]
    tracemalloc.start()
    try:
        column = headers_of("c", rows)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    section = b"\2\x08kind\x08" + b"1999"
    assert column.section(1999) == section
    assert held < 2000 * (2 * len(section) + 64)


@pytest.mark.parametrize(
    ("opener", "source", "message"),
    [
        (bytes_of, [b"a", 1], "column 'c', row 1: int is not allowed; allowed: bytes, str, None"),
        (
            bytes_of,
            np.array([1]),
            "column 'c': NumPy dtype int64 is not allowed; allowed: dtypes bytes .S., void .V., str .U. and object",
        ),
        (bytes_of, PACKED, "NumPy dtype .* is not allowed"),
        (bytes_of, np.zeros((2, 2), "S1"), "an array of 2 dimensions is not allowed; allowed: one"),
        (ints_of, [1, 1.5], "column 'c', row 1: float is not allowed; allowed: integers, None"),
        (ints_of, [True], "row 0: bool is not allowed"),
        (ints_of, np.array([1.5]), "NumPy dtype float64 is not allowed; allowed: integers"),
        (timestamps_of, np.array([1], "i4"), "NumPy dtype int32 is not allowed; allowed: datetime64, int64"),
        (headers_of, [[("a", b"")], [("b", 1)]], "column 'c', row 1: the value of header 'b' must be bytes or None"),
        (headers_of, {"a": b"1"}, "column 'c': dict is not allowed; allowed: a list with the headers of each row"),
    ],
)
def test_wrong_types_are_named_with_their_row(opener: Any, source: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        opener("c", source)


def test_integers_of_more_than_64_bits() -> None:
    with pytest.raises(IllegalArgumentError, match=f"column 'c', row 0: {2**63} is not allowed; allowed: integers"):
        ints_of("c", [2**63])
