"""Tables as rows: the shapes that are taken, and what is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from forebay.errors import IllegalArgumentError
from forebay.testing.table_rows import HEADERS, KEY, PARTITION, TIMESTAMP, rows_of

DEFAULTS = ("value", KEY, HEADERS, PARTITION, TIMESTAMP, None)


def values(table: Any, *chosen: Any) -> list[Any]:
    return [row["value"] for row in rows_of(table, *(chosen or DEFAULTS))]


@pytest.mark.parametrize(
    "table",
    [[b"a", "b"], (b"a", b"b"), {"value": ["a", b"b"]}, {"value": pa.array(["a", "b"])}, pa.array([b"a", b"b"]),
     pa.table({"value": ["a", "b"]}), pa.record_batch({"value": ["a", "b"]})],
    ids=lambda table: type(table).__name__,
)  # fmt: skip
def test_shapes(table: Any) -> None:
    assert values(table) == [b"a", b"b"]


def test_columns_are_chosen_by_name_by_themselves_or_by_a_function() -> None:
    table = {"a": [1, 2], "key": ["x", "y"]}
    found = list(rows_of(table, lambda given: [str(n) for n in given["a"]], KEY, [[("h", b"1")], None], 4, None, None))
    assert found[0] == {
        "value": b"1", "key": b"x", "headers": [("h", b"1")], "partition": 4, "timestamp": None, "topic": None,
    }  # fmt: skip
    assert found[1]["headers"] == ()


def test_what_cannot_be() -> None:
    with pytest.raises(IllegalArgumentError, match="column 'value' is missing; columns: a"):
        values({"a": [1]})
    with pytest.raises(IllegalArgumentError, match="key has 1 rows, the table has 2"):
        values([b"1", b"2"], "value", [b"k"], None, None, None, None)
    with pytest.raises(TypeError, match="not int"):
        values(5)
    with pytest.raises(TypeError, match="value, row 1: int is not allowed; allowed: bytes, str, None"):
        values([b"a", 5])


def test_what_may_change_is_copied() -> None:
    assert values([bytearray(b"a"), memoryview(b"b"), None]) == [b"a", b"b", None]


def test_two_of_one_name_and_columns_beside_the_chosen_ones() -> None:
    twice = pa.table([pa.array([b"a"]), pa.array([b"b"])], names=["value", "value"])
    for table in (twice, {1: [b"a"], "1": [b"b"], "value": [b"c"]}):
        with pytest.raises(IllegalArgumentError, match="is there more than once"):
            values(table)
    beside = pa.table([pa.array([b"a"]), pa.array([2**60]).cast(pa.timestamp("s"))], names=["value", "at"])
    assert values(beside) == [b"a"]
