"""Windows of rows: hashed, grouped and encoded as single records are; read back from the batches they come into."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay._accumulator.partitioner import BuiltInPartitioner
from forebay._records.decoded import Record
from forebay._records.rows import RowWindow
from forebay.producer._columns import BatchDelivery, append_columns, sink_columns
from tests.fakes.world import World
from tests.support.examples import examples

FIRST = {"value": b"first", "partition": 0, "timestamp": 1000}
"""Begins the batch of partition 0: the first row of a call goes alone, and so does each that begins a batch."""
KINDS = {
    "key": pa.binary(),
    "value": pa.binary(),
    "partition": pa.int64(),
    "timestamp": pa.int64(),
}


def logs_of(rows: list[dict[str, Any]], *, partitions: int = 1, kind: Any = None, **options: Any) -> list[list[Record]]:
    world = World(topics={"t": partitions}, batch_size=100_000, **options)
    names = sorted({name for row in rows for name in row})
    kinds = KINDS | ({} if kind is None else {"value": kind})
    batch = pa.RecordBatch.from_pydict({name: pa.array([row.get(name) for row in rows], kinds[name]) for name in names})
    deliveries = BatchDelivery()
    append_columns(world.producer, sink_columns(batch, "t"), deliveries)
    world.settle(20)
    assert deliveries._collect() == 0 and deliveries.acknowledged == len(rows)
    return [world.cluster.logs["t", partition].records for partition in range(partitions)]


def test_a_window_has_cells_of_each_column() -> None:
    rows = RowWindow(7)
    assert rows.capacity == 7
    assert len({id(rows.keys), id(rows.values), id(rows.headers)}) == 3


@pytest.mark.parametrize("size", [0, 1, 62, 63, 64, 127, 128, 8191, 8192, 20_000])
def test_sizes_on_both_sides_of_each_varint(size: int) -> None:
    value = bytes(range(256)) * (size // 256 + 1)
    rows = [FIRST, {"value": value[:size], "key": value[:size], "timestamp": 1000, "partition": 0}, FIRST]
    (log,) = logs_of(rows)
    assert [(one.key, one.value) for one in log] == [
        (None, b"first"),
        (value[:size], value[:size]),
        (None, b"first"),
    ]


def test_null_is_not_empty() -> None:
    cells = [None, b"", b"x"]
    rows = [FIRST] + [{"key": key, "value": value, "partition": 0} for key in cells for value in cells]
    (log,) = logs_of(rows)
    assert [(one.key, one.value) for one in log[1:]] == [(key, value) for key in cells for value in cells]


def test_timestamps_before_and_far_behind_the_first_one_of_the_batch() -> None:
    times = [1000, 0, 999, 2**45, 1, 1000]
    (log,) = logs_of([{"value": b"v", "partition": 0, "timestamp": time} for time in times])
    assert [one.timestamp for one in log] == times


def test_the_latest_timestamp_is_the_batch_s() -> None:
    world = World(topics={"t": 1})
    times = pa.array([5, 9, 7, 3], pa.int64())
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"v"] * 4, pa.binary()), "timestamp": times})
    append_columns(world.producer, sink_columns(batch, "t"), BatchDelivery())
    world.settle()
    (made,) = world.cluster.logs["t", 0].batches
    assert (made.base_timestamp, made.max_timestamp) == (5, 9)


@pytest.mark.parametrize("partitions", [1, 3, 200])
def test_keys_choose_as_send_does_unless_a_partition_is_given(partitions: int) -> None:
    rows = [{"key": b"%d" % number, "value": b"%d" % number} for number in range(3000)]
    for number in range(0, 3000, 7):
        rows[number] |= {"partition": number % partitions}  # type: ignore[dict-item]
    logs = logs_of(rows, partitions=partitions)
    world = World(topics={"t": partitions}, batch_size=100_000)
    for row in rows:
        world.producer.send("t", row["value"], row["key"], partition=row.get("partition"))  # type: ignore[arg-type]
    world.settle(20)
    for partition in range(partitions):
        assert [one.value for one in logs[partition]] == world.values("t", partition)


def test_one_window_after_another_may_have_more_partitions() -> None:
    world = World(topics={"few": 1, "many": 300})
    for topic, partitions in (("few", 1), ("many", 300), ("few", 1)):
        numbers = [number % partitions for number in range(5000)]
        batch = pa.RecordBatch.from_pydict(
            {"value": pa.array([b"%d" % number for number in range(5000)]), "partition": pa.array(numbers)}
        )
        append_columns(world.producer, sink_columns(batch, topic), BatchDelivery())
        while world.accumulator.has_incomplete():
            world.settle()
    assert world.values("many", 299) == [b"%d" % number for number in range(299, 5000, 300)]
    assert world.values("few") == 2 * [b"%d" % number for number in range(5000)]


@pytest.mark.parametrize("kind", [pa.null(), pa.binary(3), pa.large_string(), pa.string_view()], ids=str)
def test_layouts_that_are_filled_cell_by_cell(kind: Any) -> None:
    values = [None] * 40 if kind == pa.null() else [b"abc", None, b"xyz"] * 20
    (log,) = logs_of([{"value": value} for value in values], kind=kind)
    assert [one.value for one in log] == values


def test_partitioners_are_not_asked_for_rows_with_a_key() -> None:
    """A sticky choice is made at most once here, for the topic."""
    world = World(topics={"t": 5})
    sticky: BuiltInPartitioner = world.accumulator.topics["t"].partitioner
    before = sticky.peek()
    batch = pa.RecordBatch.from_pydict({"key": pa.array([b"k"] * 4000), "value": pa.array([b"v" * 20] * 4000)})
    append_columns(world.producer, sink_columns(batch, "t"), BatchDelivery())
    world.settle(20)
    assert sticky.peek() == before
    assert sorted(len(world.values("t", number)) for number in range(5)) == [0, 0, 0, 0, 4000]


def sent(steps: list[tuple[bool, list[bytes | None]]], **options: Any) -> list[Any]:
    """The batches of values alone, each list of them as a table or one by one, a moment after the other."""
    world = World(topics={"t": 1}, linger_ms=4000, buffer_memory=1 << 26, **options)
    for table, values in steps:
        if table:
            batch = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
            append_columns(world.producer, sink_columns(batch, "t"), BatchDelivery())
        else:
            for value in values:
                world.producer.send("t", value)
        world.clock.advance(100)
    world.clock.advance(4000)
    while world.accumulator.has_incomplete():
        world.settle()
    # The reader there checks every checksum.
    batches: list[Any] = world.cluster.logs["t", 0].batches
    return batches


SIZES = st.sampled_from([-1, 0, 1, 52, 53, 54, 100, 8180, 8190])
STEPS = st.lists(st.tuples(st.booleans(), st.lists(SIZES, min_size=1, max_size=200)), min_size=1, max_size=5)


@settings(max_examples=examples(40), deadline=None)
@given(STEPS, st.sampled_from([200, 16_384, 1_000_000]), st.sampled_from(["none", "lz4"]))
def test_tables_of_values_make_the_batches_of_send(
    steps: list[tuple[bool, list[int]]], batch_size: int, codec: str
) -> None:
    given = [(table, [None if size < 0 else bytes(size) for size in sizes]) for table, sizes in steps]
    options = {"batch_size": batch_size, "compression_type": codec}
    assert sent(given, **options) == sent([(False, values) for _, values in given], **options)


def test_offsets_of_every_width_in_a_table_of_values() -> None:
    steps: list[tuple[bool, list[bytes | None]]] = [(True, [b"v"] * 9000), (False, [b"one"]), (True, [b"w"] * 70)]
    (batch,) = sent(steps, batch_size=1_000_000)
    assert [one.value for one in batch.records] == [b"v"] * 9000 + [b"one"] + [b"w"] * 70
    assert [one.offset for one in batch.records] == list(range(9071))
