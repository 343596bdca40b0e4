"""What became of rows: counted by batch, by partition, and by the part of a batch that was split."""

from __future__ import annotations

from typing import Any

from forebay._columnar import Columns, Deliveries, append_columns
from forebay._future import BatchResult
from forebay._future_split import split_result
from forebay.errors import KafkaError
from forebay.model import TopicPartition
from tests.fakes.world import World
from tests.unit._columnar.tables import append, arrow


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
