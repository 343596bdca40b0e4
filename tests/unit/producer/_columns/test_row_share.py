"""What a share of a batch remembers of its rows, and what it makes of the batch's outcome."""

from __future__ import annotations

from forebay._delivery.result import BatchResult
from forebay._delivery.split import split_result
from forebay.errors import KafkaError
from forebay.producer._columns.row_share import RowShare
from tests.fakes.world import World
from tests.unit.producer._columns.tables import append


def test_rows_of_a_window_are_listed_in_the_order_of_the_batch() -> None:
    world = World(topics={"t": 2}, linger_ms=1000, batch_size=100_000)
    rows = [{"value": b"v", "partition": int(number % 3 == 0)} for number in range(10)]
    delivery = append(world, rows, "value", "partition", topic="t", first_row=100)
    world.cluster.fail("t", 1, 87)
    world.cluster.fail("t", 0, 87)
    world.run(1100)
    assert [(list(failed.rows), failed.error.code) for failed in delivery.failures] == [
        ([100, 103, 106, 109], 87),
        ([101, 102, 104, 105, 107, 108], 87),
    ]


def test_a_share_without_parts_is_over_with_its_result() -> None:
    result = BatchResult("t", 0)
    share = RowShare(result, 0)
    assert share.unfinished_index() == share.rows - 1 == -1
    result.settle(7, -1, None, None, 1, print)
    assert share.unfinished_index() == -1


def test_the_parts_of_a_split_are_looked_at_one_by_one() -> None:
    world = World(topics={"t": 1}, linger_ms=1000)
    delivery = append(world, [{"value": b"v"}] * 5, "value", topic="t")
    whole = world.queue("t", 0).batches[0].result
    parts = [BatchResult("t", 0, None, first) for first in (0, 2)]
    assert split_result(whole, parts)
    parts[1].settle(9, -1, None, None, 3, print)
    assert delivery._collect() == 1
    parts[0].settle(-1, -1, KafkaError("no"), {1: KafkaError("one")}, 2, print)
    assert delivery._collect() == 0
    assert [(list(failed.rows), str(failed.error)) for failed in delivery.failures] == [([0], "no"), ([1], "one")]
    assert delivery.partitions == {("t", 0): ((9, 3),)}
