"""Tables of rows for the tests of columns, and the two ways they can take into a producer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from forebay.producer._columns import BatchDelivery, append_columns, sink_columns
from tests.fakes.world import World

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
KINDS = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "headers": HEADERS,
    "partition": pa.int32(),
    "timestamp": pa.timestamp("ms"),
}

rows_of_records = st.lists(
    st.fixed_dictionaries(
        {
            "topic": st.sampled_from(["a", "b"]),
            "value": st.none() | st.binary(max_size=60),
            "key": st.none() | st.binary(max_size=8),
            "partition": st.none() | st.integers(0, 2),
            "timestamp": st.none() | st.integers(0, 2**45),
            "headers": st.none()
            | st.lists(
                st.fixed_dictionaries({"key": st.text(max_size=3), "value": st.none() | st.binary(max_size=3)}),
                max_size=3,
            ),
        }
    ),
    max_size=60,
)


def arrow(rows: list[dict[str, Any]], *names: str) -> pa.RecordBatch:
    """The rows as a record batch of the columns ``names``; of all, if none is named."""
    return pa.RecordBatch.from_pydict(
        {name: pa.array([row.get(name) for row in rows], KINDS[name]) for name in (names or KINDS)}
    )


def append(
    world: World,
    rows: list[dict[str, Any]],
    *names: str,
    topic: str | None = None,
    first_row: int = 0,
    delivery: BatchDelivery | None = None,
) -> BatchDelivery:
    deliveries = BatchDelivery() if delivery is None else delivery
    append_columns(world.producer, sink_columns(arrow(rows, *names), topic), deliveries, first_row)
    return deliveries


def send(world: World, row: dict[str, Any]) -> None:
    world.producer.send(
        row["topic"],
        row["value"],
        row["key"],
        headers=[(header["key"], header["value"]) for header in row["headers"] or ()],
        partition=row["partition"],
        timestamp=row["timestamp"],
    )
