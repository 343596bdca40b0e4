"""A million rows as columns do what as many calls of send() do: the same batches, limits and errors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay._columnar import Columns, Deliveries, append_columns
from forebay._future import BatchResult
from forebay._future_split import split_result
from forebay.errors import (
    BufferExhaustedError,
    IllegalArgumentError,
    KafkaError,
    ProducerClosedError,
    RecordTooLargeError,
    TimeoutError,
)
from forebay.model import TopicPartition
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
    world: World, rows: list[dict[str, Any]], *names: str, topic: str | None = None, first_row: int = 0
) -> Deliveries:
    deliveries = Deliveries()
    append_columns(world.producer, Columns(arrow(rows, *names), topic), deliveries, first_row)
    return deliveries


def send(world: World, row: dict[str, Any]) -> None:
    world.producer.send(
        row["topic"],
        row["value"],
        row["key"],
        [(header["key"], header["value"]) for header in row["headers"] or ()],
        row["partition"],
        row["timestamp"],
    )


@settings(max_examples=60, deadline=None)
@given(rows=rows_of_records, compression=st.sampled_from(["none", "zstd"]))
def test_columns_make_the_batches_that_send_makes(rows: list[dict[str, Any]], compression: str) -> None:
    options: dict[str, Any] = {"topics": {"a": 3, "b": 3}, "compression_type": compression, "batch_size": 300}
    columnar, one_by_one = World(**options), World(**options)
    deliveries = append(columnar, rows)
    for row in rows:
        send(one_by_one, row)
    for world in (columnar, one_by_one):
        world.settle(40)
    deliveries.collect()
    assert deliveries.acknowledged == deliveries.rows == len(rows)
    assert {where: log.batches for where, log in columnar.cluster.logs.items()} == {
        where: log.batches for where, log in one_by_one.cluster.logs.items()
    }


def test_deliveries_count_rows_batches_and_bytes_by_partition() -> None:
    world = World(topics={"t": 2})
    rows = [{"value": b"x" * 10, "partition": i % 2, "timestamp": 5} for i in range(7)]
    deliveries = append(world, rows, "value", "partition", "timestamp", topic="t")
    assert deliveries.collect() == 2
    assert (deliveries.rows, deliveries.acknowledged) == (7, 0)
    world.settle()
    assert deliveries.collect() == 0
    assert (deliveries.acknowledged, deliveries.failed, deliveries.batches) == (7, 0, 2)
    assert deliveries.partitions == {TopicPartition("t", 0): 4, TopicPartition("t", 1): 3}
    assert deliveries.raw_bytes == sum(len_of(batch) for log in world.cluster.logs.values() for batch in log.batches)


def len_of(batch: Any) -> int:
    return int(batch.payload_size)


def test_a_null_timestamp_is_now() -> None:
    world = World(topics={"t": 1})
    append(world, [{"value": b"v"}], "value", "timestamp", topic="t")
    world.settle()
    assert [record.timestamp for record in world.cluster.logs["t", 0].records] == [world.clock.wall()]


def test_the_option_topic_hides_a_topic_column() -> None:
    world = World(topics={"t": 1})
    append(world, [{"value": b"v", "topic": None}, {"value": b"w", "topic": "gone"}], "value", "topic", topic="t")
    world.settle()
    assert world.values("t") == [b"v", b"w"]


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
        ({"value": b"v", "topic": "elsewhere"}, TimeoutError, "Topic elsewhere not present in metadata"),
        ({"value": b"v", "partition": 9}, TimeoutError, "Partition 9 of topic t with partition count 1"),
    ],
)
def test_a_row_that_cannot_be_taken_is_named_and_those_before_it_are_delivered(
    bad: dict[str, Any], error: type[Exception], message: str
) -> None:
    world = World(topics={"t": 1}, max_request_size=500, max_block_ms=0)
    rows = [{"value": b"good", "topic": "t"}, {"topic": "t"} | bad, {"value": b"after", "topic": "t"}]
    deliveries = Deliveries()
    with pytest.raises(error, match=message) as caught:
        append_columns(world.producer, Columns(arrow(rows)), deliveries, 100)
    assert "row=101" in str(caught.value)
    world.settle()
    deliveries.collect()
    assert (deliveries.rows, deliveries.acknowledged) == (1, 1)
    assert world.values("t") == [b"good"]


def test_a_full_buffer_raises_after_max_block_ms_and_names_the_row() -> None:
    world = World(topics={"t": 1}, buffer_memory=1000, batch_size=1000, max_block_ms=0)
    rows = [{"value": b"v" * 400}, {"value": b"v" * 400}, {"value": b"v" * 400}]
    with pytest.raises(BufferExhaustedError, match="row=2"):
        append(world, rows, "value", topic="t")


def test_a_closed_producer_refuses() -> None:
    world = World(topics={"t": 1})
    world.producer._set_state(1)
    with pytest.raises(ProducerClosedError):
        append(world, [{"value": b"v"}], "value", topic="t")


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


def test_keys_are_ignored_when_the_partitioner_is_told_to() -> None:
    world = World(topics={"t": 3}, partitioner_ignore_keys=True)
    append(world, [{"value": b"v", "key": b"key-%d" % i} for i in range(20)], "key", "value", topic="t")
    world.settle()
    assert sorted(len(world.values("t", partition)) for partition in range(3)) == [0, 0, 20]


def test_a_batch_without_rows_does_nothing() -> None:
    world = World(topics={"t": 1})
    assert append(world, [], "value", topic="t").rows == 0


def test_columns_need_a_value_and_a_topic() -> None:
    with pytest.raises(IllegalArgumentError, match="column 'value' is missing; columns: key"):
        Columns(arrow([{"key": b"k"}], "key"), "t")
    with pytest.raises(IllegalArgumentError, match="neither a topic nor a column 'topic' is given; columns: value"):
        Columns(arrow([{"value": b"v"}], "value"))


def test_a_row_can_be_looked_at() -> None:
    columns = Columns(arrow([{"value": b"v", "topic": "t", "partition": 1, "timestamp": 7}]))
    assert len(columns) == 1
    assert columns.row(0) == ("t", 1, 7, None, b"v", b"\x00")


def test_rows_of_a_batch_that_was_split_are_counted_by_their_part() -> None:
    """Two callers take turns; of each, the rows are told apart that came into the part that failed."""
    world = World(topics={"t": 1}, idempotent=True, batch_size=4096, linger_ms=10)
    world.cluster.fail("t", 0, 10, 0, 87)
    mine, other = Deliveries(), Deliveries()
    for number in range(8):
        deliveries = other if number in (1, 2, 6) else mine
        rows = [{"value": b"%d" % number + bytes(100)}]
        append_columns(world.producer, Columns(arrow(rows, "value"), "t"), deliveries, deliveries.rows)
    world.run(500)
    assert world.metric("batch-split-total") == 1
    # Parts of three, three and two records; the second one is refused for good.
    assert [value[:1] for value in world.values("t") if value is not None] == [b"0", b"1", b"2", b"6", b"7"]
    assert (mine.collect(), other.collect()) == (0, 0)
    assert (mine.rows, mine.acknowledged, mine.failed, mine.first_failed_row) == (5, 2, 3, 1)
    assert (other.rows, other.acknowledged, other.failed, other.first_failed_row) == (3, 3, 0, -1)
    assert (mine.batches, other.batches) == (1, 1)


def test_rows_noted_by_hand_are_the_batch_s_first_ones() -> None:
    whole = BatchResult("t", 0)
    parts = [BatchResult("t", 0, None, first) for first in (0, 2)]
    deliveries = Deliveries()
    for row in range(5):
        deliveries.track(whole, row, 10)
    assert split_result(whole, parts)
    parts[0].settle(0, -1, None, None, 2, print)
    parts[1].settle(-1, -1, KafkaError("no"), None, 3, print)
    assert deliveries.collect() == 0
    assert (deliveries.acknowledged, deliveries.failed, deliveries.first_failed_row) == (2, 3, 2)
