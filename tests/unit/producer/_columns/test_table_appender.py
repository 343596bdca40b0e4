"""A million rows as columns do what as many calls of send() do: the same batches, limits and errors."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

from forebay.errors import (
    BufferExhaustedError,
    IllegalArgumentError,
    KafkaTimeoutError,
    ProducerClosedError,
    RecordTooLargeError,
)
from forebay.model._cluster import Cluster
from forebay.producer._columns import BatchDelivery, append_columns, sink_columns
from tests.fakes.world import World
from tests.unit.producer._columns.tables import append, arrow


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


def test_keys_are_ignored_when_the_partitioner_is_told_to() -> None:
    world = World(topics={"t": 3}, partitioner_ignore_keys=True)
    append(world, [{"value": b"v", "key": b"key-%d" % i} for i in range(20)], "key", "value", topic="t")
    world.settle()
    assert sorted(len(world.values("t", partition)) for partition in range(3)) == [0, 0, 20]


def test_a_batch_without_rows_does_nothing() -> None:
    world = World(topics={"t": 1})
    assert append(world, [], "value", topic="t").rows == 0


# More than one window, and errors in the midst of one

ROWS = 5000
BAD = 3001


def many(count: int = ROWS, partitions: int = 3) -> list[dict[str, Any]]:
    return [{"value": b"%d" % number, "partition": number % partitions, "timestamp": 5} for number in range(count)]


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"value": b"v" * 70_000}, RecordTooLargeError, "max.request.size"),
        ({"timestamp": -7}, IllegalArgumentError, "Invalid timestamp: -7 ms"),
        ({"partition": -2}, IllegalArgumentError, "Invalid partition: -2"),
        ({"partition": 3}, KafkaTimeoutError, "Partition 3 of topic t with partition count 3"),
        ({"headers": [{"key": "a", "value": b""}, {"key": None, "value": b""}]}, IllegalArgumentError, "null key"),
        ({"headers": [None]}, IllegalArgumentError, "header 0 is null"),
    ],
)
@pytest.mark.parametrize("first_row", [0, 100_000])
def test_a_bad_row_amid_a_window_is_named_after_all_rows_before_it(
    bad: dict[str, Any], error: type[Exception], message: str, first_row: int
) -> None:
    world = World(topics={"t": 3}, max_block_ms=0, max_request_size=60_000)
    rows = many()
    rows[BAD] |= bad
    deliveries = BatchDelivery()
    with pytest.raises(error, match=message) as caught:
        append_columns(world.producer, sink_columns(arrow(rows), "t"), deliveries, first_row)
    assert caught.value.context["row"] == first_row + BAD  # type: ignore[attr-defined]
    world.settle(40)
    deliveries._collect()
    assert (deliveries.rows, deliveries.acknowledged) == (BAD, BAD)
    for partition in range(3):
        assert world.values("t", partition) == [b"%d" % number for number in range(partition, BAD, 3)]


def test_the_size_limit_is_the_same_amid_a_window() -> None:
    world = World(topics={"t": 1}, max_request_size=1000)
    limit = 1000 - 61 - 21
    good = [{"value": b"v"}, {"value": bytes(limit)}, {"value": bytes(limit - 3), "key": b"key"}]
    assert append(world, good, "key", "value", topic="t").rows == 3
    for over in ({"value": bytes(limit + 1)}, {"value": bytes(limit - 2), "key": b"key"}):
        with pytest.raises(RecordTooLargeError, match="The message is 1001 bytes") as caught:
            append(world, [*good, over], "key", "value", topic="t", first_row=7)
        assert caught.value.context["row"] == 10


def test_without_memory_the_first_row_that_is_in_no_batch_is_named() -> None:
    """Partition 0 comes first in a window and runs out of memory at row 99; row 2 of partition 1 is not in then."""
    world = World(topics={"t": 2}, buffer_memory=2000, batch_size=1000, max_block_ms=0)
    rows = [{"value": b"%3d" % number + bytes(30), "partition": int(number == 2)} for number in range(100)]
    deliveries = BatchDelivery()
    with pytest.raises(BufferExhaustedError) as caught:
        append_columns(world.producer, sink_columns(arrow(rows, "value", "partition"), "t"), deliveries, 1000)
    assert caught.value.context["row"] == 1002
    world.settle(20)
    deliveries._collect()
    taken = [int((value or b"")[:3]) for value in world.values("t", 0)]
    assert taken == [number for number in range(len(taken) + 1) if number != 2]
    assert deliveries.acknowledged == deliveries.rows == len(taken) > 40
    assert world.values("t", 1) == []


def test_windows_go_by_the_newest_number_of_partitions() -> None:
    world = World(topics={"t": 2})
    append(world, many(10, 2), "value", "partition", topic="t")
    world.cluster.create("t", 5, range(1))
    world.metadata.request_update_for_topic("t")
    world.run(500)
    deliveries = append(world, many(ROWS, 5), "value", "partition", topic="t")
    world.settle(40)
    deliveries._collect()
    assert deliveries.acknowledged == ROWS
    assert world.values("t", 4) == [b"%d" % number for number in range(4, ROWS, 5)]


def test_a_sealed_accumulator_takes_no_row_even_into_an_open_batch() -> None:
    world = World(topics={"t": 1}, linger_ms=1000)
    assert append(world, many(10, 1), "value", topic="t").rows == 10
    world.accumulator.seal()
    deliveries = BatchDelivery()
    with pytest.raises(ProducerClosedError, match="row=0"):
        append_columns(world.producer, sink_columns(arrow(many(10, 1), "value"), "t"), deliveries)
    assert deliveries.rows == 0
    world.accumulator.unseal()
    assert append(world, many(10, 1), "value", topic="t").rows == 10
    world.run(1100)
    assert len(world.values("t")) == 20


def test_rows_of_several_callers_in_one_batch_are_told_apart() -> None:
    world = World(topics={"t": 1}, linger_ms=1000, batch_size=100_000)
    one, other = BatchDelivery(), BatchDelivery()
    for at in range(0, 3000, 500):
        mine = one if at % 1000 else other
        append_columns(world.producer, sink_columns(arrow(many(3000)[at : at + 500], "value"), "t"), mine, at)
    assert (one._collect(), other._collect()) == (1, 1)
    world.run(1100)
    assert (one._collect(), other._collect()) == (0, 0)
    assert (one.acknowledged, other.acknowledged, one.batches, other.batches) == (1500, 1500, 1, 1)
    assert world.values("t") == [b"%d" % number for number in range(3000)]
    assert one.raw_bytes + other.raw_bytes == sum(batch.payload_size for batch in world.cluster.logs["t", 0].batches)


def test_a_topic_that_gets_smaller_amid_a_window_misplaces_nothing() -> None:
    world = World(topics={"t": 4}, batch_size=1000, linger_ms=1000)
    append(world, many(1, 4), "value", "partition", topic="t")
    sizes: list[int] = []

    def wakeup() -> None:
        # A batch is full: just then the sender's thread takes in that the topic was made anew.
        if not sizes:
            sizes.append(2)
            info = world.metadata.cluster().partitions("t")[:2]
            nodes = world.metadata.cluster().nodes
            world.accumulator.refresh("t", Cluster(nodes, info, version=world.metadata.cluster().version + 1))

    world.selector.wakeup = wakeup  # type: ignore[method-assign]
    deliveries = append(world, many(2000, 4), "value", "partition", topic="t")
    del world.selector.wakeup
    assert (deliveries.rows, sizes) == (2000, [2])
    assert world.accumulator.topics["t"].partition_count == 2
    assert [sum(batch.record_count for batch in world.queue("t", number).batches) for number in range(4)] == [
        501,
        500,
        500,
        500,
    ]


def test_rows_of_both_kinds_keep_their_order() -> None:
    """Some have keys, some may go anywhere: those that meet in a partition are there in the order of the rows."""
    world = World(topics={"t": 3}, batch_size=1000, linger_ms=5)
    count = 5000
    keys = [None if number % 7 < 3 or 2500 < number < 3500 else b"%d" % (number % 40) for number in range(count)]
    batch = pa.record_batch(
        {"key": pa.array(keys, pa.binary()), "value": pa.array([b"%d" % number for number in range(count)])}
    )
    deliveries = BatchDelivery()
    append_columns(world.producer, sink_columns(batch, "t"), deliveries)
    world.run(500)
    logs = [[int(value) for value in world.values("t", number) if value is not None] for number in range(3)]
    assert sorted(chain(*logs)) == list(range(count))
    assert all(log == sorted(log) for log in logs)
    assert deliveries._collect() == 0 and deliveries.acknowledged == count


def test_ctrl_c_after_a_row_was_taken_counts_it() -> None:
    """The interrupt comes where the sender is woken for the batch that the first row began."""
    world = World(topics={"t": 1}, linger_ms=1000)
    delivery = BatchDelivery()

    def wakeup() -> None:
        raise KeyboardInterrupt

    world.selector.wakeup = wakeup  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        append_columns(world.producer, sink_columns(arrow(many(10, 1), "value"), "t"), delivery)
    del world.selector.wakeup
    assert (delivery.rows, delivery.taken()) == (1, [range(1)])
    world.run(1100)
    assert delivery.result(0) == {("t", 0): ((0, 1),)}


def test_ctrl_c_while_a_full_batch_is_compressed_loses_no_row_of_it() -> None:
    world = World(topics={"t": 1}, linger_ms=1000, batch_size=1000, compression_type="lz4")
    closer = world.accumulator.closer
    compress, packed = closer.compressor.compress_to_pieces, []

    def interrupted(chunks: Any, topic: str) -> list[bytes]:
        packed.append(1)
        if len(packed) == 3:
            raise KeyboardInterrupt
        return list(compress(chunks))

    closer.compressor.compress_to_pieces = interrupted
    delivery = BatchDelivery()
    with pytest.raises(KeyboardInterrupt):
        append_columns(world.producer, sink_columns(arrow(many(4000, 1), "value"), "t"), delivery)
    taken = [row for rows in delivery.taken() for row in rows]
    assert taken == list(range(delivery.rows))
    world.run(1500)
    assert world.values("t") == [b"%d" % row for row in taken]
    assert delivery.acknowledged == len(taken) > 100
