"""Rows one by one: several topics, a partitioner of the user's, and what cannot be taken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.errors import IllegalArgumentError, KafkaTimeoutError, RecordTooLargeError
from forebay.producer._columns import BatchDelivery, append_columns, sink_columns
from tests.fakes.world import World
from tests.support.examples import examples
from tests.unit.producer._columns.tables import append, arrow, rows_of_records, send


@settings(max_examples=examples(60), deadline=None)
@given(rows=rows_of_records, compression=st.sampled_from(["none", "zstd"]))
def test_columns_make_the_batches_that_send_makes(rows: list[dict[str, Any]], compression: str) -> None:
    options: dict[str, Any] = {"topics": {"a": 3, "b": 3}, "compression_type": compression, "batch_size": 300}
    columnar, one_by_one = World(**options), World(**options)
    deliveries = append(columnar, rows)
    for row in rows:
        send(one_by_one, row)
    for world in (columnar, one_by_one):
        world.settle(40)
    deliveries._collect()
    assert deliveries.acknowledged == deliveries.rows == len(rows)
    assert {where: log.batches for where, log in columnar.cluster.logs.items()} == {
        where: log.batches for where, log in one_by_one.cluster.logs.items()
    }


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (
            {"value": b"v", "topic": None},
            IllegalArgumentError,
            "null topic present in the data. Use the option 'topic'",
        ),
        ({"value": b"v", "partition": -1}, IllegalArgumentError, "Invalid partition: -1"),
        ({"value": b"v", "timestamp": -1}, IllegalArgumentError, "Invalid timestamp: -1 ms"),
        ({"value": b"v" * 1000}, RecordTooLargeError, "max.request.size"),
        ({"value": b"v", "headers": [{"key": None, "value": b""}]}, IllegalArgumentError, "null key"),
        ({"value": b"v", "topic": "elsewhere"}, KafkaTimeoutError, "Topic elsewhere not present in metadata"),
        ({"value": b"v", "partition": 9}, KafkaTimeoutError, "Partition 9 of topic t with partition count 1"),
    ],
)
def test_a_row_that_cannot_be_taken_is_named_and_those_before_it_are_delivered(
    bad: dict[str, Any], error: type[Exception], message: str
) -> None:
    world = World(topics={"t": 1}, max_request_size=500, max_block_ms=0)
    rows = [{"value": b"good", "topic": "t"}, {"topic": "t"} | bad, {"value": b"after", "topic": "t"}]
    deliveries = BatchDelivery()
    with pytest.raises(error, match=message) as caught:
        append_columns(world.producer, sink_columns(arrow(rows)), deliveries, 100)
    assert "row=101" in str(caught.value)
    world.settle()
    deliveries._collect()
    assert (deliveries.rows, deliveries.acknowledged) == (1, 1)
    assert world.values("t") == [b"good"]


def test_a_users_partitioner_is_asked_for_rows_without_a_partition() -> None:
    asked: list[Any] = []

    def last(topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, cluster: Any) -> int:
        asked.append((topic, key_bytes, value_bytes))
        return 1

    world = World(topics={"t": 2}, partitioner_class=last)
    append(
        world, [{"value": b"v", "key": b"k"}, {"value": b"w", "partition": 0}], "key", "value", "partition", topic="t"
    )
    world.settle()
    assert (world.values("t", 0), world.values("t", 1)) == ([b"w"], [b"v"])
    assert asked == [("t", b"k", b"v")]
