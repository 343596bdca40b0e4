"""Columns by name: what is needed, and what a row looks like."""

from __future__ import annotations

import pytest

from forebay._columnar import sink_columns
from forebay.errors import IllegalArgumentError
from tests.unit._columnar.tables import arrow


def test_columns_need_a_value_and_a_topic() -> None:
    with pytest.raises(IllegalArgumentError, match="column 'value' is missing; columns: key"):
        sink_columns(arrow([{"key": b"k"}], "key"), "t")
    with pytest.raises(IllegalArgumentError, match="neither a topic nor a column 'topic' is given; columns: value"):
        sink_columns(arrow([{"value": b"v"}], "value"))


def test_a_row_can_be_looked_at() -> None:
    columns = sink_columns(arrow([{"value": b"v", "topic": "t", "partition": 1, "timestamp": 7}]))
    assert len(columns) == 1
    assert columns.row(0) == ("t", 1, 7, None, b"v", b"\x00")
