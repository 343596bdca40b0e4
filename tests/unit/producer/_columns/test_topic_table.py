"""Topic columns: every row to its own topic, in order, whatever the layout of the column and the number of topics."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from forebay.errors import IllegalArgumentError, KafkaTimeoutError
from forebay.producer._columns.topic_table import TopicTable
from tests.fakes.world import World

COUNT = 6000


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.string_view(), "dictionary"], ids=str)
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("topics", [1, 5, 1500])
def test_rows_go_to_their_topics_in_order(kind: Any, keyed: bool, topics: int) -> None:
    """1,500 topics have more names than a table has slots."""
    world = World(topics={f"t{number}": 2 for number in range(topics)}, known=False, linger_ms=1000)
    for name in world.cluster.topics:
        world.metadata.add_topic(name, world.now)
    world.settle(20)
    for name in world.cluster.topics:
        world.accumulator.refresh(name, world.metadata.cluster())
    names = [f"t{number * number % topics}" for number in range(COUNT)]
    column = pa.array(names, pa.string() if kind == "dictionary" else kind)
    table = {
        "value": pa.array([b"%d" % number for number in range(COUNT)]),
        "key": pa.array([b"k%d" % (number % 7) if keyed else None for number in range(COUNT)], pa.binary()),
        "to": column.dictionary_encode() if kind == "dictionary" else column,
    }
    delivery = world.producer.send_batch(None, table, topic_column="to")
    world.run(1100)
    assert sum(run.records for runs in delivery.result(0).values() for run in runs) == COUNT
    for topic in range(0, topics, 97):
        mine = [number for number in range(COUNT) if names[number] == f"t{topic}"]
        logs = [[int(value or b"") for value in world.values(f"t{topic}", partition)] for partition in range(2)]
        assert sorted(logs[0] + logs[1]) == mine
        assert all(log == sorted(log) for log in logs)


def test_a_null_cell_goes_to_the_topic_that_was_given() -> None:
    world = World(topics={"a": 1, "b": 1})
    topics = ["a", None, "b", None] * 900
    delivery = world.producer.send_batch("b", [b"%d" % row for row in range(3600)], topic_column=topics)
    world.settle(40)
    assert delivery.done()
    assert [len(world.values("a")), len(world.values("b"))] == [900, 2700]


def test_without_such_a_topic_it_is_refused() -> None:
    world = World(topics={"a": 1})
    with pytest.raises(IllegalArgumentError, match="null topic present in the data") as caught:
        world.producer.send_batch(None, [b"v"] * 3000, topic_column=["a"] * 2500 + [None] * 500)
    assert caught.value.context["row"] == 2500


def test_an_unknown_topic_ends_the_call_after_the_rows_before_it() -> None:
    world = World(topics={"a": 1}, max_block_ms=0)
    with pytest.raises(KafkaTimeoutError, match="Topic elsewhere not present") as caught:
        world.producer.send_batch(None, [b"v"] * 3000, topic_column=["a"] * 2500 + ["elsewhere"] * 500)
    assert caught.value.delivery.taken() == [range(2500)]


def test_a_table_begins_without_topics() -> None:
    assert TopicTable().states == []
