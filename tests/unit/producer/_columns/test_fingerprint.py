"""Rows are known again in any order and any pieces, and not if a single byte of one differs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from forebay._runtime.xxhash64 import xxhash64
from forebay.producer._columns import fingerprint, sink_columns

MASK = (1 << 64) - 1
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def of(where: str | None = "t", /, **columns: Any) -> int:
    return fingerprint(sink_columns(pa.RecordBatch.from_pydict(columns), where))


def expected(key: bytes | None, value: bytes | None) -> int:
    seed = 0
    for cell in (key, value):
        seed = xxhash64(seed ^ 0x6E756C6C, b"", 0) if cell is None else xxhash64(seed, cell, len(cell))
    return seed


@pytest.mark.parametrize("size", [0, 1, 3, 4, 7, 8, 11, 12, 31, 32, 33, 63, 64, 100, 1000])
def test_it_is_the_sum_of_the_rows_hashes_by_the_interpreted_twin(size: int) -> None:
    keys = [b"k%d" % number for number in range(5)]
    values = [bytes((number * 7 + at) & 0xFF for at in range(size)) for number in range(5)]
    wanted = sum(expected(key, value) for key, value in zip(keys, values, strict=True)) & MASK
    assert of(key=keys, value=values) == wanted


def test_order_and_pieces_do_not_matter() -> None:
    keys = [str(number) for number in range(5000)]
    values = [None if number % 3 == 0 else f"value-{number}" for number in range(5000)]
    whole = of(key=keys, value=values)
    assert of(key=keys[::-1], value=values[::-1]) == whole
    pieces = (of(key=keys[at : at + 700], value=values[at : at + 700]) for at in range(0, 5000, 700))
    assert sum(pieces) & MASK == whole


def test_each_field_counts_and_null_is_not_empty() -> None:
    rows: dict[str, Any] = {
        "key": pa.array(["a"]),
        "value": pa.array(["b"]),
        "headers": pa.array([[{"key": "h", "value": b"1"}]], HEADERS),
        "partition": pa.array([1], pa.int32()),
    }
    others = {
        "key": [pa.array(["ab"]), pa.array([""]), pa.array([None], pa.string())],
        "value": [pa.array(["c"]), pa.array([""]), pa.array([None], pa.string())],
        "headers": [pa.array([[{"key": "h", "value": b"2"}]], HEADERS), pa.array([[]], HEADERS)],
        "partition": [pa.array([0], pa.int32()), pa.array([None], pa.int32())],
    }
    found = {of(**rows)}
    for name, changed in others.items():
        for column in changed:
            found.add(of(**(rows | {name: column})))
    found.add(of(key=["a", "a"], value=["b", "b"]))
    assert len(found) == 2 + sum(len(changed) for changed in others.values())


def test_a_topic_of_a_column_counts_and_a_timestamp_does_not() -> None:
    assert of(None, topic=["t", "u"], value=["a", "b"]) != of(None, topic=["u", "t"], value=["a", "b"])
    times = [pa.array([number], pa.timestamp("ms")) for number in (1, 2)]
    assert of(value=["a"], timestamp=times[0]) == of(value=["a"], timestamp=times[1]) == of(value=["a"])


def test_no_rows_are_zero() -> None:
    assert of(value=pa.array([], pa.string())) == 0
