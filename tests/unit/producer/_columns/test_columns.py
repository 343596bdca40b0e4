"""Columns by name: what is needed, and what a row looks like; keys to partitions, by Kafka's own values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from demo.check import partition_of
from forebay.errors import IllegalArgumentError
from forebay.producer._columns import key_partitions, sink_columns
from tests.unit.producer._columns.tables import arrow


def test_columns_need_a_value_and_a_topic() -> None:
    with pytest.raises(IllegalArgumentError, match="column 'value' is missing; columns: key"):
        sink_columns(arrow([{"key": b"k"}], "key"), "t")
    with pytest.raises(IllegalArgumentError, match="neither a topic nor a column 'topic' is given; columns: value"):
        sink_columns(arrow([{"value": b"v"}], "value"))


def test_a_row_can_be_looked_at() -> None:
    columns = sink_columns(arrow([{"value": b"v", "topic": "t", "partition": 1, "timestamp": 7}]))
    assert len(columns) == 1
    assert columns.row(0) == ("t", 1, 7, None, b"v", b"\x00")


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string()], ids=str)
def test_each_key_has_the_partition_of_javas_partitioner_and_null_has_none(kind: pa.DataType) -> None:
    keys = [f"key-{number}" for number in range(300)]
    found = key_partitions(pa.array([*keys, None, ""], pa.string()).cast(kind), 7)
    assert found == [*(partition_of(key.encode(), 7) for key in keys), -1, partition_of(b"", 7)]
    assert set(found[:300]) == set(range(7))


def test_a_slice_is_read_from_its_own_start() -> None:
    keys = pa.array(["21", "foobar", "abc"])
    # The values of Java's UtilsTest.
    hashes = [-790332482, 479470107]
    assert key_partitions(keys.slice(1), 1000) == [(number & 0x7FFFFFFF) % 1000 for number in hashes]
