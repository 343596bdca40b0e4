"""The demo's judge: what it must notice."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.check import compare, digest, expected_rows, expected_rows_of, partition_of

ROW = (3, 1000, b"k", (("h", b"v"),), b"value")


@pytest.mark.parametrize(
    ("key", "murmur2"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_its_own_partitioner_has_kafkas_values(key: bytes, murmur2: int) -> None:
    """A murmur2: the values of Java's UtilsTest."""
    for partitions in (1, 6, 1000):
        assert partition_of(key, partitions) == (murmur2 & 0x7FFFFFFF) % partitions


@pytest.mark.parametrize(
    "other",
    [
        (2, 1000, b"k", (("h", b"v"),), b"value"),
        (3, 1001, b"k", (("h", b"v"),), b"value"),
        (3, 1000, b"", (("h", b"v"),), b"value"),
        (3, 1000, None, (("h", b"v"),), b"value"),
        (3, 1000, b"k", (("h", None),), b"value"),
        (3, 1000, b"k", (("hv", b""),), b"value"),
        (3, 1000, b"k", (), b"value"),
        (3, 1000, b"k", (("h", b"v"), ("h", b"v")), b"value"),
        (3, 1000, b"k", (("h", b"v"),), None),
    ],
)
def test_any_field_that_differs_changes_the_digest(
    other: tuple[int, int, bytes, tuple[tuple[str, bytes]], bytes],
) -> None:
    assert digest(*other) != digest(*ROW)


def test_equal_multisets_are_in_order() -> None:
    verdict = compare(Counter({b"a": 2, b"b": 1}), Counter({b"a": 2, b"b": 1}), {})
    assert verdict.ok
    assert str(verdict) == "every row is there once, unchanged"


def test_a_missing_a_doubled_and_a_changed_row_are_told_apart() -> None:
    expected = Counter({b"a": 1, b"b": 1, b"c": 2, b"d": 1})
    read = Counter({b"a": 2, b"c": 1, b"d": 1, b"x": 1})
    verdict = compare(expected, read, {b"a": (0, 7), b"x": (1, 9)})
    assert (verdict.missing, verdict.doubled, verdict.unknown) == (2, 1, 1)
    assert sorted(verdict.examples) == ["doubled: partition 0, offset 7", "unknown: partition 1, offset 9"]
    assert str(verdict) == "2 missing, 1 doubled, 1 unknown or changed"


def test_rows_come_from_parquet_with_whole_milliseconds(tmp_path: Path) -> None:
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "key": ["abc"],
            "value": ["v"],
            "headers": pa.array([[{"key": "h", "value": None}]], headers),
            "timestamp": pa.array([1_357_034_400_000_000], pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(table, tmp_path / "part.parquet")
    expected = digest(479470107 % 6, 1_357_034_400_000, b"abc", [("h", None)], b"v")
    assert expected_rows_of(tmp_path / "part.parquet", 6) == [expected]
    shutil.copy(tmp_path / "part.parquet", tmp_path / "other.parquet")
    assert expected_rows(tmp_path, 6) == {expected: 2}
