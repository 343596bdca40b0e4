"""Columns against calls of send(): the same records, partition by partition, whatever the layout, sizes and codec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.producer._columns import BatchDelivery, append_columns, sink_columns
from tests.fakes.world import World
from tests.property.profile import seeded

TOPIC, PARTITIONS = "t", 3
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
LAYOUTS = ["binary", "large", "string", "large string", "view", "fixed", "dictionary", "runs"]
ROOM = 1 << 25
LIMIT = 6000
"""max.request.size; a row of 3 KB with a key is below it."""

short = st.none() | st.binary(max_size=8)
cells = st.one_of(st.none(), st.just(b""), st.binary(max_size=40), st.integers(0, 3000).map(lambda size: b"x" * size))
header = st.fixed_dictionaries({"key": st.text(max_size=3), "value": short})
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A table, as the rows it repeats, and the producer that gets it."""

    pattern: list[Row]
    length: int
    layout: str
    columns: frozenset[str]
    batch_size: int
    codec: str

    def rows(self) -> Iterator[Row]:
        """Its number is at the beginning of each value that is not empty."""
        for number in range(self.length):
            row = self.pattern[number % len(self.pattern)]
            value = row["value"]
            if self.layout == "fixed":
                value = None if value is None else (b"%d," % number + value).ljust(12, b".")[:12]
            elif value:
                value = b"%d," % number + value
            if self.layout in ("string", "large string") and value is not None:
                value = value.decode("latin-1").encode("ascii", "replace")
            yield {name: row[name] for name in self.columns} | {"value": value}


cases = st.builds(
    Case,
    pattern=st.lists(
        st.fixed_dictionaries(
            {
                "value": cells,
                "key": short,
                "partition": st.none() | st.integers(0, PARTITIONS - 1),
                "timestamp": st.none() | st.integers(0, 2**45),
                "headers": st.none() | st.lists(header, max_size=2),
            }
        ),
        min_size=1,
        max_size=30,
    ),
    length=st.integers(0, 300) | st.integers(0, 6000),
    layout=st.sampled_from(LAYOUTS),
    columns=st.frozensets(st.sampled_from(["key", "partition", "timestamp", "headers"])),
    batch_size=st.integers(1, 16384),
    codec=st.sampled_from(["none", "lz4", "zstd"]),
)


def values_as(layout: str, values: list[bytes | None]) -> pa.Array:
    """One column in this layout, and not from its beginning."""
    padded = [b"padding.....", None, *values]
    kinds = {"large": pa.large_binary(), "view": pa.binary_view(), "fixed": pa.binary(12)}
    kinds |= {"string": pa.string(), "large string": pa.large_string()}
    found = pa.array(padded, kinds.get(layout, pa.binary()))
    if layout == "runs":
        return pc.run_end_encode(found)[2:]
    return (found.dictionary_encode() if layout == "dictionary" else found)[2:]


def table(case: Case, rows: list[Row]) -> pa.RecordBatch:
    kinds = {"key": pa.binary(), "partition": pa.int32(), "timestamp": pa.timestamp("ms"), "headers": HEADERS}
    made = {name: pa.array([row[name] for row in rows], kinds[name]) for name in case.columns}
    return pa.RecordBatch.from_pydict(made | {"value": values_as(case.layout, [row["value"] for row in rows])})


def world_of(case: Case) -> World:
    return World(
        topics={TOPIC: PARTITIONS},
        batch_size=case.batch_size,
        compression_type=case.codec,
        max_request_size=LIMIT,
        buffer_memory=ROOM,
    )


def send(world: World, row: Row) -> None:
    headers = [(one["key"], one["value"]) for one in row.get("headers") or ()]
    world.producer.send(
        TOPIC,
        row["value"],
        row.get("key"),
        headers=headers,
        partition=row.get("partition"),
        timestamp=row.get("timestamp"),
    )


def settle(world: World) -> None:
    while world.accumulator.has_incomplete():
        world.settle(4)
    assert world.pool.available() == ROOM


def records(world: World) -> list[list[tuple[Any, ...]]]:
    """What stands in each partition's log."""
    return [
        [(one.key, one.value, one.timestamp, one.headers) for one in world.cluster.logs[TOPIC, partition].records]
        for partition in range(PARTITIONS)
    ]


def check(case: Case) -> None:
    """The same table by columns and by send()."""
    rows = list(case.rows())
    columnar, one_by_one = world_of(case), world_of(case)
    deliveries = BatchDelivery()
    append_columns(columnar.producer, sink_columns(table(case, rows), TOPIC), deliveries)
    for row in rows:
        send(one_by_one, row)
    for world in (columnar, one_by_one):
        settle(world)
    assert deliveries._collect() == 0
    assert (deliveries.rows, deliveries.acknowledged, deliveries.failed) == (case.length, case.length, 0)
    check_records(case, rows, records(columnar), records(one_by_one))
    check_batches(case, columnar, deliveries)


def check_records(
    case: Case, rows: list[Row], found: list[list[tuple[Any, ...]]], expected: list[list[tuple[Any, ...]]]
) -> None:
    # Without key and partition a row goes anywhere: there only the order among themselves is the same.
    anywhere = [row.get("key") is None and row.get("partition") is None for row in rows]
    if not any(anywhere):
        assert found == expected
    assert Counter(map(repr, chain(*found))) == Counter(map(repr, chain(*expected)))
    for mine, theirs in zip(found, expected, strict=True):
        for kind in range(2):
            belongs = partial(is_of, kind, anywhere)
            assert list(filter(belongs, mine)) == list(filter(belongs, theirs))
        numbers = [number for one in mine if (number := number_of(one)) is not None and anywhere[number]]
        assert numbers == sorted(numbers)


def is_of(kind: int, anywhere: list[bool], record: tuple[Any, ...]) -> bool:
    """Whether a record had to come into its partition, for its key (0) or by the row that its value names (1)."""
    number = number_of(record)
    return record[0] is not None if kind == 0 else number is not None and not anywhere[number]


def number_of(record: tuple[Any, ...]) -> int | None:
    """Which row it was, where its value says so."""
    digits, comma, _ = (record[1] or b"").partition(b",")
    return int(digits) if comma else None


def check_batches(case: Case, world: World, deliveries: BatchDelivery) -> None:
    """No batch over its limit, which is batch.size by estimate, or one record; no more than max.request.size raw."""
    batches = [batch for log in world.cluster.logs.values() for batch in log.batches]
    assert deliveries.batches == len(batches)
    if case.codec == "none":
        assert all(batch.size <= case.batch_size or batch.count == 1 for batch in batches)
        assert deliveries.raw_bytes == sum(batch.size - 61 for batch in batches)
    else:
        assert all(batch.size <= LIMIT for batch in batches)


@seeded(80)
@given(case=cases)
def test_columns_are_what_as_many_sends_are(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("layout", "codec", "batch_size"),
    [(layout, *[("none", 16384), ("none", 700), ("zstd", 5000)][at % 3]) for at, layout in enumerate(LAYOUTS)],
)
def test_several_windows_of_each_layout(layout: str, codec: str, batch_size: int) -> None:
    pattern: list[Row] = [
        {
            "value": [b"a" * (7 * number), None, b""][number % 7 % 3],
            "key": [None, b"", b"%d" % number][number % 3],
            "partition": number % PARTITIONS if number % 5 == 0 else None,
            "timestamp": None if number % 4 == 0 else number * 1000,
            "headers": [{"key": "h", "value": None}] if number % 6 == 0 else None,
        }
        for number in range(60)
    ]
    for columns in (frozenset(pattern[0]) - {"value"}, frozenset({"key"}), frozenset[str]()):
        check(Case(pattern, 4500, layout, columns, batch_size, codec))
