"""Columns of Python lists, and of NumPy arrays by their addresses (NumPy itself is not imported).

Making a column checks every value of a list, so a wrong type is refused before any row is sent.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

from forebay._arrow.columns import BytesColumn
from forebay._arrow.headers import HeadersColumn
from forebay._arrow.numbers import IntColumn, TimestampColumn
from forebay._records.batch_v2 import encode_headers
from forebay._runtime.times import unix_ms
from forebay.errors import IllegalArgumentError

INTEGERS = {"i1": b"c", "i2": b"s", "i4": b"i", "i8": b"l", "u1": b"C", "u2": b"S", "u4": b"I", "u8": b"L"}
"""NumPy's integer types by kind and bytes, in Arrow's letters."""
UNITS = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}
ENDLESS = 1 << 62
"""The length of a column that has one value for all rows."""


def is_numpy(source: object) -> bool:
    """Whether ``source`` is a NumPy array."""
    return hasattr(source, "__array_interface__") and hasattr(source, "dtype") and hasattr(source, "strides")


def is_listed(source: object) -> bool:
    """Whether ``source`` is a list of values."""
    return isinstance(source, (list, tuple))


def bytes_of(name: str, source: Any) -> BytesColumn:
    """A column of keys, values or topics.

    Raises:
        TypeError: a type that has no bytes.
    """
    if is_listed(source):
        return _listed(name, list(source))
    kind = _one_dimensional(name, source).dtype.kind
    if kind in "OUT" or _is_masked(source):
        return _listed(name, source.tolist())
    if kind not in "SV" or source.dtype.names is not None:
        raise _wrong(name, source, "dtypes bytes (S), void (V), str (U) and object (of bytes, str, None)")
    column = BytesColumn(name, len(source), source)
    column.open_fixed(_address(source), source.strides[0], source.dtype.itemsize, kind == "S")
    return column


def ints_of(name: str, source: Any) -> IntColumn:
    """A column of partitions; a single int stands for all rows.

    Raises:
        TypeError: not integers.
    """
    numbers, nulls, length = _integers(name, source)
    column = IntColumn(name, length, (numbers, nulls))
    if isinstance(numbers, array):
        column.open(numbers.buffer_info()[0], 0 if length == ENDLESS else 8, b"l", _bitmap_address(nulls))
    else:
        column.open(_address(numbers), numbers.strides[0], INTEGERS[numbers.dtype.str[1:]], 0)
    return column


def timestamps_of(name: str, source: Any) -> TimestampColumn:
    """A column of timestamps: milliseconds as integers, or datetime64; a single int, or an aware
    datetime, stands for all rows.

    Raises:
        TypeError: neither integers nor datetime64.
        IllegalArgumentError: a datetime without a time zone.
    """
    if hasattr(source, "utcoffset"):
        source = unix_ms(source)
    if is_numpy(source) and _one_dimensional(name, source).dtype.kind == "M" and not _is_masked(source):
        return _datetimes(name, source)
    numbers, nulls, length = _integers(name, source)
    if not isinstance(numbers, array) and numbers.dtype.str[1:] != "i8":
        raise _wrong(name, source, "datetime64, int64 in milliseconds")
    column = TimestampColumn(name, length, (numbers, nulls))
    if isinstance(numbers, array):
        stride = 0 if length == ENDLESS else 8
        column.open(numbers.buffer_info()[0], stride, (1, 1), _bitmap_address(nulls))
    else:
        column.open(_address(numbers), numbers.strides[0], (1, 1), 0)
    return column


def headers_of(name: str, source: Any) -> HeadersColumn:
    """A column of headers: for each row what ``send()`` takes, or None.

    Raises:
        TypeError, IllegalArgumentError: as ``send()`` for such headers; names the row.
    """
    if is_numpy(source) and source.dtype.kind == "O":
        source = _one_dimensional(name, source).tolist()
    if not is_listed(source):
        raise _wrong(name, source, "a list with the headers of each row, an Arrow list of them")
    sections = []
    for row, headers in enumerate(source):
        try:
            sections.append(encode_headers(() if headers is None else headers))
        except (TypeError, IllegalArgumentError) as error:
            raise type(error)(f"column {name!r}, row {row}: {error}") from None
    column = HeadersColumn(name, len(sections), None)
    column.open_sections(_listed(name, sections))
    return column


def _listed(name: str, cells: list[Any]) -> BytesColumn:
    column = BytesColumn(name, len(cells), None)
    column.open_objects(cells)
    return column


def _integers(name: str, source: Any) -> tuple[Any, array[int] | None, int]:
    """Numbers (an array of the standard library, or a NumPy one), the bitmap of those that are not null, and rows."""
    if isinstance(source, int) and not isinstance(source, bool):
        return array("q", _checked(name, [source])), None, ENDLESS
    if is_numpy(source) and not _is_masked(source) and _one_dimensional(name, source).dtype.kind in "iu":
        native = source if source.dtype.isnative else source.astype(source.dtype.newbyteorder("="))
        return _aligned(native), None, len(source)
    if is_numpy(source) and (_is_masked(source) or source.dtype.kind == "O"):
        source = _one_dimensional(name, source).tolist()
    if not is_listed(source):
        raise _wrong(name, source, "integers, a list of them, an array of them")
    return _listed_integers(name, source)


def _listed_integers(name: str, source: Any) -> tuple[array[int], array[int] | None, int]:
    numbers = array("q", _checked(name, source))
    if None not in source:
        return numbers, None, len(numbers)
    bitmap = array("B", bytes(len(numbers) // 8 + 1))
    for row, number in enumerate(source):
        if number is not None:
            bitmap[row >> 3] |= 1 << (row & 7)
    return numbers, bitmap, len(numbers)


def _checked(name: str, source: Iterable[Any]) -> Iterable[int]:
    for row, number in enumerate(source):
        if number is None:
            yield 0
            continue
        if isinstance(number, bool) or not hasattr(type(number), "__index__"):
            raise TypeError(
                f"column {name!r}, row {row}: {type(number).__name__} is not allowed; allowed: integers, None"
            )
        value = number.__index__()
        if not -(1 << 63) <= value < 1 << 63:
            raise IllegalArgumentError(
                f"column {name!r}, row {row}: {value} is not allowed; allowed: integers that fit into 64 bits, None"
            )
        yield value


def _datetimes(name: str, source: Any) -> TimestampColumn:
    unit = source.dtype.str[4:-1]
    if source.dtype.str[0] == ">" or unit not in UNITS:
        # Also days, hours and multiples such as [25s].
        source = source.astype("<M8[s]" if unit in ("Y", "M", "W", "D", "h", "m") else "<M8[ms]")
        unit = source.dtype.str[4:-1]
    source = _aligned(source)
    column = TimestampColumn(name, len(source), source)
    column.open(_address(source), source.strides[0], UNITS[unit], 0)
    column.count_nat()
    return column


def _one_dimensional(name: str, source: Any) -> Any:
    if not is_numpy(source):
        raise _wrong(name, source, "an Arrow array, a NumPy array, a list")
    if source.ndim != 1:
        raise TypeError(f"column {name!r}: an array of {source.ndim} dimensions is not allowed; allowed: one")
    return source


def _is_masked(source: Any) -> bool:
    return hasattr(source, "mask")


def _aligned(source: Any) -> Any:
    # A field of a packed structure may begin at any address, but integers are read at aligned ones only.
    return source if source.flags.aligned else source.copy()


def _address(source: Any) -> int:
    return int(source.__array_interface__["data"][0])


def _bitmap_address(bitmap: array[int] | None) -> int:
    return 0 if bitmap is None else bitmap.buffer_info()[0]


def _wrong(name: str, source: Any, allowed: str) -> TypeError:
    what = f"NumPy dtype {source.dtype}" if is_numpy(source) else type(source).__name__
    return TypeError(f"column {name!r}: {what} is not allowed; allowed: {allowed}")
