"""Every type of Arrow with its extremes, and what each value is to a reader that knows nothing of Arrow.

``tests/unit/rows`` writes the table as JSON and as Avro.  A row that a format cannot have is refused by it, so each row
says what each format makes of it.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

REFUSED = object()
"""In the place of a value: the format refuses it, by the column and the row."""
NOT_TAKEN = object()
"""In the place of a value: the format has no such type, and refuses the column."""


class Extreme(NamedTuple):
    """One value of a type."""

    kind: Any
    cell: Any
    """An array of one row."""
    json: Any
    """What ``json`` reads."""
    avro: Any
    """What a reader of Avro reads, with numbers for days and times."""


def stored(kind: Any, number: int) -> Any:
    """A cell of this type with this number in its memory, whatever the type says of numbers."""
    size = {1: "<b", 2: "<h", 4: "<i", 8: "<q"}[kind.bit_width // 8]
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(struct.pack(size, number))])


def text(kind: Any, data: bytes) -> Any:
    """A cell of this type of text or bytes with these bytes, whatever the type says of them."""
    return pa.array([data], pa.binary()).view(pa.string()).cast(kind) if data.isascii() else _damaged(kind, data)


def _damaged(kind: Any, data: bytes) -> Any:
    wide = kind in (pa.large_string(), pa.large_binary())
    ends = struct.pack("<qq" if wide else "<ii", 0, len(data))
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])


def _iso(number: int, unit: Any, suffix: str = "") -> str:
    """By NumPy, whose calendar has no end near here."""
    shown = str(np.datetime64(number, unit))
    year = int(shown[: shown.index("-", 1)])
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}{shown[shown.index('-', 1) :]}{suffix}"


def _numbers() -> list[Extreme]:
    found = []
    for bits in (8, 16, 32, 64):
        for signed in (True, False):
            kind = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
            least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
            for value in (least, most):
                avro: Any = NOT_TAKEN if kind == pa.uint64() else value
                found.append(Extreme(kind, pa.array([value], kind), value, avro))
    for kind, values in (
        (pa.float16(), (65504.0, -(2.0**-24))),
        (pa.float32(), (float(np.finfo(np.float32).max), float(np.float32(1e-45)))),
        (pa.float64(), (1.7976931348623157e308, -5e-324)),
    ):
        for value in values:
            # As few digits as tell it from the numbers beside it of the same width.
            shown = float(str(np.float32(value))) if kind == pa.float32() else value
            found.append(Extreme(kind, pa.array([value], kind), shown, value))
        found += [Extreme(kind, pa.array([value], kind), REFUSED, value) for value in (float("inf"), float("-inf"))]
    for name, digits in (("decimal32", 9), ("decimal64", 18), ("decimal128", 38), ("decimal256", 76)):
        if hasattr(pa, name):
            for value in (Decimal(f"-{'9' * (digits - 2)}.99"), Decimal("0.01")):
                kind = getattr(pa, name)(digits, 2)
                found.append(Extreme(kind, pa.array([value], kind), value, value))
    return found


def _times() -> list[Extreme]:
    days = (0, -1, 2_932_896, 2_932_897, 11_248_737, -12_687_428, -719_528, -719_529)
    beyond = (11_248_738, -12_687_429, 2**31 - 1, -(2**31))
    found = [Extreme(pa.date32(), stored(pa.date32(), day), _iso(day, "D"), day) for day in days]
    found += [Extreme(pa.date32(), stored(pa.date32(), day), REFUSED, day) for day in beyond]
    for day in days:
        found.append(Extreme(pa.date64(), stored(pa.date64(), day * 86_400_000), _iso(day, "D"), day))
    for number in (1, -1, 86_400_001, 2**63 - 1, -(2**63)):
        found.append(Extreme(pa.date64(), stored(pa.date64(), number), REFUSED, REFUSED))
    for kind, day in (
        (pa.time32("s"), 86_400), (pa.time32("ms"), 86_400_000), (pa.time64("us"), 86_400 * 10**6),
        (pa.time64("ns"), 86_400 * 10**9),
    ):  # fmt: skip
        for number in (0, day - 1):
            shown = str(np.datetime64(number, kind.unit)).partition("T")[2]
            scale = {"s": 1000, "ms": 1, "us": 1, "ns": 1}[kind.unit]
            avro = REFUSED if kind.unit == "ns" and number else number * scale
            found.append(Extreme(kind, stored(kind, number), shown, avro))
        for number in (-1, day, 2 ** (kind.bit_width - 1) - 1):
            found.append(Extreme(kind, stored(kind, number), REFUSED, REFUSED))
    for unit, second in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        for zone in (None, "America/New_York"):
            found += _timestamps(pa.timestamp(unit, zone), second)
    return found


def _timestamps(kind: Any, second: int) -> list[Extreme]:
    suffix = "" if kind.tz is None else "Z"
    seconds = (0, -1, 253_402_318_799, -62_135_596_800, -62_167_219_201, 971_890_963_199, -1_096_193_779_200)
    inside = [one * second for one in seconds if -(2**63) <= one * second < 2**63]
    found = []
    for number in inside:
        avro: Any = number * 10**6 // second
        found.append(Extreme(kind, stored(kind, number), _iso(number, kind.unit, suffix), avro))
    for number in (2**63 - 1, -(2**63) + 1):
        micros = number * 10**6 // second if second <= 10**6 else number / 1000
        avro = micros if -(2**63) <= micros < 2**63 and micros == int(micros) and kind.unit != "ns" else REFUSED
        shown = REFUSED if kind.unit != "ns" else _iso(number, kind.unit, suffix)
        found.append(Extreme(kind, stored(kind, number), shown, avro))
    return found


def _texts() -> list[Extreme]:
    odd = '"\\\n\x00\x1f\x7f\u2028\U0001f600'
    found = []
    for kind in (pa.string(), pa.large_string()):
        found += [Extreme(kind, pa.array([value], kind), value, value) for value in ("", odd, "x" * 70_000)]
        for data in (b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"a\xf0\x9f"):
            found.append(Extreme(kind, text(kind, data), REFUSED, REFUSED))
    found += [Extreme(pa.string_view(), pa.array([value], pa.string_view()), value, value) for value in ("", odd * 9)]
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)):
        found.append(Extreme(kind, pa.array([b"\x00\xff"], kind), NOT_TAKEN, b"\x00\xff"))
    return found


def _nested() -> list[Extreme]:
    inner = pa.list_(pa.int64())
    lists = (inner, pa.large_list(pa.int64()), pa.list_view(pa.int64()), pa.large_list_view(pa.int64()))
    found = [
        Extreme(kind, pa.array([[1, None]], kind), NOT_TAKEN, [1, None]) for kind in (*lists, pa.list_(pa.int64(), 2))
    ]
    found += [Extreme(kind, pa.array([[]], kind), NOT_TAKEN, []) for kind in lists]
    pairs = pa.map_(pa.string(), pa.int64())
    found.append(Extreme(pairs, pa.array([[("k", 1), ("l", None)]], pairs), NOT_TAKEN, {"k": 1, "l": None}))
    found.append(Extreme(pairs, pa.array([[("k", 1), ("k", 2)]], pairs), NOT_TAKEN, REFUSED))
    views = pa.map_(pa.string_view(), pa.binary_view())
    found.append(Extreme(views, pa.array([[("k", b"v")]], views), NOT_TAKEN, {"k": b"v"}))
    deep = pa.struct([("at", pa.timestamp("s")), ("of", pa.list_(pa.struct([("t", pa.time64("us"))])))])
    at = pa.StructArray.from_arrays([stored(pa.timestamp("s"), 253_402_318_799), pa.array([[{"t": 1}]], deep[1].type)], ["at", "of"])  # fmt: skip  # noqa: E501
    found.append(Extreme(deep, at, NOT_TAKEN, {"at": 253_402_318_799_000_000, "of": [{"t": 1}]}))
    wrong = pa.StructArray.from_arrays([stored(pa.timestamp("s"), 2**62), pa.array([None], deep[1].type)], ["at", "of"])
    found.append(Extreme(deep, wrong, NOT_TAKEN, REFUSED))
    return found


def _shorter() -> list[Extreme]:
    """Layouts that say the same in fewer bytes."""
    found = []
    for value, kind in (
        ("ä", pa.string()),
        ("ä", pa.string_view()),
        (7, pa.int64()),
        (Decimal("1.50"), pa.decimal128(4, 2)),
    ):
        plain = pa.array([value], kind)
        for index in (pa.int8(), pa.uint32(), pa.int64()):
            cell = pa.DictionaryArray.from_arrays(pa.array([0], index), plain)
            found.append(Extreme(cell.type, cell, value, value))
        for ends in (pa.int16(), pa.int64()):
            runs = pa.RunEndEncodedArray.from_arrays(pa.array([1], ends), plain)
            found.append(Extreme(runs.type, runs, value, value))
    late = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), stored(pa.date32(), 2_932_897))
    found.append(Extreme(late.type, late, "+10000-01-01", 2_932_897))
    bad = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), text(pa.string(), b"\xff"))
    found.append(Extreme(bad.type, bad, REFUSED, REFUSED))
    return found


def _others() -> list[Extreme]:
    union = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    found = [Extreme(one.type, one, NOT_TAKEN, NOT_TAKEN) for one in (
        pa.array([1], pa.duration("s")), pa.array([(1, 2, 3)], pa.month_day_nano_interval()), union,
        pa.ExtensionArray.from_storage(pa.opaque(pa.binary(), "bits", "somebody"), pa.array([b"\x05"])),
    )]  # fmt: skip
    found += [Extreme(pa.bool_(), pa.array([value]), value, value) for value in (True, False)]
    return [*found, Extreme(pa.null(), pa.array([None]), None, NOT_TAKEN)]


EXTREMES = [*_numbers(), *_times(), *_texts(), *_nested(), *_shorter(), *_others()]
